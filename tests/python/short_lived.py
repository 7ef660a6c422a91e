"""Processes that live under half a second, each burning in a function of a name that no other process has.

    short_lived.py --name ID [--ms 250]             one of them: burns MS of CPU time in short_ID, file "<short-ID>"
    short_lived.py [--count 200] [--parallel 4]     a parent that runs so many, 150 to 400 ms each, by turns

Truth of one: as of the others. Truth of the parent: `processes` lists {name, pid, ms, start_ns, end_ns, functions}
(wall clock in ns since the epoch, from before its first own line to its last).
"""
import json
import random
import subprocess
import sys
import time

import _case
from _case import cpu

SOURCE = """def short_{0}(T, cpu, seconds):
    T.saw("short_{0}", (3, 4))
    x, t0 = 0, cpu()
    end = t0 + seconds
    while cpu() < end:
        x = (x * 3 + 1) & 0xFFFF
    T.spent("short_{0}", cpu() - t0)
"""


def one(args):
    start = time.time_ns()
    t = _case.Truth(__file__)
    _case.ready(args)
    space = {}
    exec(compile(SOURCE.format(args.name), "<short-%s>" % args.name, "exec"), space)
    space["short_" + args.name](t, cpu, args.ms / 1000)
    t.write(args, start_ns=start, end_ns=time.time_ns())
    return t.d


def child(args):
    """One process, as its parent runs it: its truth is the last line on stdout."""
    print(json.dumps(one(args)), flush=True)


def parent(args):
    t = _case.Truth(__file__)
    _case.ready(args)
    rng = random.Random(args.seed)
    todo = [("%04d" % n, rng.randint(150, 400)) for n in range(args.count)]
    processes = []
    while todo:
        batch, todo = todo[:args.parallel], todo[args.parallel:]
        running = [(name, ms, subprocess.Popen([sys.executable, __file__, "--name", name, "--ms", str(ms), "--tell"],
                                               stdout=subprocess.PIPE)) for name, ms in batch]
        for name, ms, p in running:
            out, _ = p.communicate()
            d = json.loads(out.splitlines()[-1])
            processes.append({"name": name, "pid": d["pid"], "ms": ms, "start_ns": d["start_ns"], "end_ns": d["end_ns"],
                              "functions": d["functions"]})
    t.write(args, seed=args.seed, processes=processes)


def main():
    p = _case.parser(__doc__)
    p.add_argument("--name", metavar="ID", help="be one process; ID is made of letters, digits and underscores")
    p.add_argument("--ms", type=int, default=250, help="CPU time of one process (default 250)")
    p.add_argument("--tell", action="store_true", help="print the truth of one process on stdout too")
    p.add_argument("--count", type=int, default=200, help="processes that the parent runs (default 200)")
    p.add_argument("--parallel", type=int, default=4, help="at a time (default 4)")
    p.add_argument("--seed", type=int, default=1, help="of their times (default 1)")
    args = p.parse_args()
    if not args.name:
        parent(args)
    elif args.tell:
        child(args)
    else:
        one(args)


if __name__ == "__main__":
    main()
