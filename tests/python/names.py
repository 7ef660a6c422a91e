"""Functions that plain names cannot tell apart: each burns SECONDS of its thread's CPU time.

Two classes that share a method name, a nested function, a decorated function, two lambdas on different lines, a
generator expression, a list comprehension, and work of the module itself. From 3.11 on qualified names differ; before
it, names or first lines do. A list comprehension has a frame of its own only before 3.12.
"""
import collections
import functools

import _case
from _case import cpu

PARSER = _case.parser(__doc__)
PARSER.add_argument("seconds", nargs="?", type=float, default=1.0, metavar="SECONDS", help="of each (default 1)")
ARGS = PARSER.parse_args()
T = _case.Truth(__file__)


class Circle:
    def draw(self):
        T.saw("Circle.draw", (3, 4))
        x, t0 = 0, cpu()
        end = t0 + ARGS.seconds
        while cpu() < end:
            x = (x * 3 + 1) & 0xFFFF
        T.spent("Circle.draw", cpu() - t0)


class Square:
    def draw(self):
        T.saw("Square.draw", (3, 4))
        x, t0 = 0, cpu()
        end = t0 + ARGS.seconds
        while cpu() < end:
            x = (x * 3 + 1) & 0xFFFF
        T.spent("Square.draw", cpu() - t0)


def outer():
    def inner():
        T.saw("outer.inner", (3, 4))
        x, t0 = 0, cpu()
        end = t0 + ARGS.seconds
        while cpu() < end:
            x = (x * 3 + 1) & 0xFFFF
        T.spent("outer.inner", cpu() - t0)

    inner()


def logged(fn):
    @functools.wraps(fn)
    def wrapper(*args):
        return fn(*args)

    return wrapper


@logged
def decorated():
    T.saw("decorated", (3, 4))
    x, t0 = 0, cpu()
    end = t0 + ARGS.seconds
    while cpu() < end:
        x = (x * 3 + 1) & 0xFFFF
    T.spent("decorated", cpu() - t0)


def lambdas():
    """The sum is C code; the lambda is the last Python frame."""
    pair = [
        ("lambda one", lambda n: sum(range(n)) if n else T.saw("lambda one", (0,))),
        ("lambda two", lambda n: sum(range(n)) if n else T.saw("lambda two", (0,))),
    ]
    for key, fn in pair:
        fn(0)
        t0 = cpu()
        while cpu() < t0 + ARGS.seconds:
            fn(100000)
        T.spent(key, cpu() - t0)


def generator_expression():
    t0, n = cpu(), 0
    while cpu() < t0 + ARGS.seconds:
        collections.deque((i * i & 0xFFFF if i else n or T.saw("genexpr", (0,)) for i in range(20000)), 0)
        n = 1
    T.spent("genexpr", cpu() - t0)


def list_comprehension():
    t0, n = cpu(), 0
    while cpu() < t0 + ARGS.seconds:
        n = len([i * i & 0xFFFF if i else n or T.saw("listcomp", (0,)) for i in range(20000)])
    T.spent("listcomp", cpu() - t0)


_case.ready(ARGS)
Circle().draw()
Square().draw()
outer()
decorated()
lambdas()
generator_expression()
list_comprehension()
T.saw("<module>", (3, 4))
X, T0 = 0, cpu()
END = T0 + ARGS.seconds
while cpu() < END:
    X = (X * 3 + 1) & 0xFFFF
T.spent("<module>", cpu() - T0)
T.write(ARGS)
