"""A stack of many kinds of frames that stands still: says its truth on one line and waits for a byte on stdin.

Recursion of DEPTH, a method, a nested function, a generator, a coroutine, a lambda and a name outside ASCII. The last
frame takes the truth and blocks on the same line, in C, with the GIL released.
images/capture.rs runs it under the file name image.py, so that no path of a machine is in the truth.
"""
import json
import os
import sys
import threading

DEPTH = int(sys.argv[1]) if len(sys.argv) > 1 else 40


def chain(frame):
    frames = []
    while frame is not None:
        code = frame.f_code
        frames.append([code.co_qualname, code.co_filename, frame.f_lineno, code.co_firstlineno])
        frame = frame.f_back
    return frames[::-1]


def stand():
    say = lambda frame: print(json.dumps({"ident": threading.get_ident(), "chain": chain(frame)}), flush=True)  # noqa: E731
    return say(sys._getframe()), os.read(0, 1)


class Größe:
    def messen(self):
        def innen():
            return (lambda: stand())()

        return innen()


async def coroutine():
    return Größe().messen()


def run(coro):
    try:
        coro.send(None)
    except StopIteration as end:
        return end.value


def generator():
    yield run(coroutine())


def recurse(n):
    if n:
        return recurse(n - 1)
    return list(generator())


recurse(DEPTH)
