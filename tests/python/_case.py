"""What the target programs share: arguments, the gate, the thread CPU clock, and the truth they write.

A program prints `ready PID`, waits for a line on stdin if --gate is given, works, and then writes what a profiler must
show as JSON to --truth FILE. The truth comes from the interpreter itself: chains from sys._getframe, line sets from
co_lines (from the line table before 3.10), seconds from the CPU clock of the thread that worked.
Python 3.6 and newer, standard library only.

The truth of every program:
    program, python, pid, tid, file
    functions   {KEY: {name, qualname (null before 3.11), file, first_line, seconds, lines, burn_lines, chains}}
        KEY         what the case calls it
        seconds     CPU time between the two clock reads around its work
        lines       every line that the interpreter's own table gives for the function's code
        burn_lines  the lines of its loop, where it spends its time
        chains      [[{name, qualname, file, line, first_line}, ...], ...] root first; `line` of a caller is the line of
                    the call, `line` of the last frame is where the chain was taken, not where it burns
"""
import argparse
import dis
import functools
import json
import os
import sys
import threading
import time

# 3.6 has no thread_time: the same clock, and still no Python frame.
cpu = getattr(time, "thread_time", None) or functools.partial(time.clock_gettime, time.CLOCK_THREAD_CPUTIME_ID)


def parser(doc):
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gate", action="store_true", help="wait for a line on stdin before working")
    p.add_argument("--truth", default="", metavar="FILE", help="where the truth goes (default: nowhere)")
    return p


def ready(args):
    print("ready %d" % os.getpid(), flush=True)
    if args.gate:
        sys.stdin.readline()


def code_lines(code):
    """All lines of a code object, by the interpreter's own table."""
    if hasattr(code, "co_lines"):
        return sorted({line for _, _, line in code.co_lines() if line})
    return sorted({line for _, line in dis.findlinestarts(code) if line})


def chain(frame):
    """The frames from the root to this one."""
    out = []
    while frame is not None:
        code = frame.f_code
        out.append({"name": code.co_name, "qualname": getattr(code, "co_qualname", None), "file": code.co_filename,
                    "line": frame.f_lineno, "first_line": code.co_firstlineno})
        frame = frame.f_back
    return out[::-1]


class Truth:
    def __init__(self, file):
        self.d = {"program": os.path.basename(file), "python": "%d.%d.%d" % sys.version_info[:3], "pid": os.getpid(),
                  "tid": getattr(threading, "get_native_id", os.getpid)(), "file": file, "functions": {}}

    def saw(self, key, burn_lines=()):
        """Record the caller as function `key`; burn_lines count from the line that calls this."""
        frame = sys._getframe(1)
        code = frame.f_code
        f = self.d["functions"].get(key)
        if f is None:
            f = self.d["functions"][key] = {
                "name": code.co_name, "qualname": getattr(code, "co_qualname", None), "file": code.co_filename,
                "first_line": code.co_firstlineno, "lines": code_lines(code),
                "burn_lines": [frame.f_lineno + n for n in burn_lines], "seconds": 0.0, "chains": []}
        here = chain(frame)
        if here not in f["chains"]:
            f["chains"].append(here)

    def spent(self, key, seconds):
        self.d["functions"][key]["seconds"] += seconds

    def write(self, args, **extra):
        self.d.update(extra)
        if args.truth:
            with open(args.truth + ".tmp", "w", encoding="utf-8") as f:
                json.dump(self.d, f)
            os.rename(args.truth + ".tmp", args.truth)
