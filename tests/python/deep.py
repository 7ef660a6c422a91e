"""A Python stack of exactly DEPTH frames, <module> and the burning leaf included; the leaf burns SECONDS of CPU time.

--mode python      recursion in Python alone: <module>, main, recurse ..., leaf
--mode alternate   from main on each Python frame is called back by C code, by functools.reduce and sorted(key=...) in
                   turn: <module>, main, by_reduce, by_sorted, by_reduce, ..., leaf

The truth's `between` has one entry for each pair of neighbours in the chain: the Python name of the C function between
them, or "" for a plain call.
"""
import functools
import sys

import _case
from _case import cpu

T = _case.Truth(__file__)
SECONDS = 1.0


def leaf(*_):
    T.saw("leaf", (3, 4))
    x, t0 = 0, cpu()
    end = t0 + SECONDS
    while cpu() < end:
        x = (x * 3 + 1) & 0xFFFF
    T.spent("leaf", cpu() - t0)
    return x


def recurse(n):
    return recurse(n - 1) if n > 1 else leaf()


def by_reduce(_, n):
    """Called by functools.reduce; goes on through sorted, which calls its key once for one element."""
    return sorted([n - 1], key=by_sorted if n > 1 else leaf)


def by_sorted(n):
    """Called by sorted; goes on through functools.reduce, which calls its function once for two elements."""
    return functools.reduce(by_reduce if n > 1 else leaf, (None, n - 1))


def main():
    global SECONDS
    p = _case.parser(__doc__)
    p.add_argument("depth", type=int, metavar="DEPTH", help="Python frames in all, 4 or more")
    p.add_argument("seconds", nargs="?", type=float, default=1.0, metavar="SECONDS", help="CPU seconds (default 1)")
    p.add_argument("--mode", choices=("python", "alternate"), default="python")
    args = p.parse_args()
    if args.depth < 4:
        p.error("DEPTH must be 4 or more")
    SECONDS = args.seconds
    sys.setrecursionlimit(args.depth * 3 + 200)
    _case.ready(args)
    middle = args.depth - 3
    if args.mode == "python":
        recurse(middle)
        between = [""] * (args.depth - 1)
    else:
        functools.reduce(by_reduce, (None, middle))
        between = [""] + [("reduce", "sorted")[i % 2] for i in range(args.depth - 2)]
    T.write(args, depth=args.depth, mode=args.mode, between=between)


if __name__ == "__main__":
    main()
