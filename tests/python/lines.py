"""Code whose line numbers are hard to read back; each place burns SECONDS of its thread's CPU time.

Calls spread over lines, comments and blank lines between arguments, backward line steps, try/except/finally, decorators,
method chains, long jumps forward and back, and one function of some 20,000 statements on two lines each. The last two
stand in a file that is generated beside the truth (or in a temporary folder).

Truth: each `burn` is called at a place of its own; the caller lines in its chains are what the interpreter says of the
call. `lines` of the functions far and huge is every line that a sample's leaf may have there. `codes` lists {name, file,
first_line, lines} of every code object of both files: no frame may show another line than these.
"""
import os
import shutil
import sys
import tempfile

import _case
from _case import cpu

T = _case.Truth(__file__)
SECONDS = 0.2


def burn(key):
    T.saw(key, (3, 4))
    x, t0 = 0, cpu()
    end = t0 + SECONDS
    while cpu() < end:
        x = (x * 3 + 1) & 0xFFFF
    T.spent(key, cpu() - t0)
    return x


def add(*args):
    return sum(args)


def spread():
    return add(
        # a comment before the first argument
        burn("spread: first argument"),

        # a blank line and a comment between

        add(
            1,
            # and one inside
            burn(
                "spread: argument of an argument",
            ),
            2,
        ),
        3,
    )


def backward():
    """The outer call's line comes before the lines of its arguments, which are run first."""
    return burn(
        "backward: "
        + str(
            "call"
        )
    ) + (
        1
        +
        burn("backward: operand") -
        2
    )


def handlers():
    try:

        burn("handlers: try")
        raise KeyError

    except (
        KeyError,
        IndexError,
    ):
        burn("handlers: except")
    finally:

        burn("handlers: finally, after an exception was handled")


def quiet():
    try:
        pass
    finally:
        burn("quiet: finally, without an exception")


def raises():
    try:
        try:
            raise KeyError
        finally:
            burn("raises: finally, while an exception passes")
    except KeyError:
        pass


def plain(fn):
    return fn


def with_arguments(*args):
    def wrap(fn):
        def call():
            return fn()
        return call
    return wrap


@plain
# a comment between decorators
@with_arguments(
    1,
    2,
)
@plain
def decorated():

    return burn("decorated")


@with_arguments(burn)
def decorator_above():
    return burn("decorator_above")


class Chain:
    def link(self, key=None):
        if key:
            burn(key)
        return self


def links():
    return (
        Chain()
        .link()

        .link("links: second")
        # and on
        .link(
            "links: third"
        )
    )


def text():
    return f"""
        {burn("text: first")}

        {burn("text: second")}
    """


def looped():
    for _ in (
        1,
    ):

        while True:
            if (
                burn("looped: condition")
                and False
            ):
                continue
            break


def far_source(jump):
    """A loop whose head and body are `jump` blank lines apart, so that each round steps far forward and far back.

    Most of its time is in C, called from three lines far apart.
    """
    gap = "\n" * jump
    return ("def far(T, cpu, seconds):\n    T.saw('far')\n    x, t0 = 0, cpu()\n    while cpu() < t0 + seconds:\n"
            "        x = x ^ sum(R)\n%s        x = x + sum(R)\n%s        x = x ^ len(str(sum(R)))\n%s    T.spent('far', cpu() - t0)\n\n\n"
            % (gap, gap, gap))


def huge_source(statements):
    body = "        x = (x * 3 +\n             1) & 0xFFFF\n" * statements
    return ("def huge(T, cpu, seconds):\n    T.saw('huge')\n    x, t0 = 0, cpu()\n    while cpu() < t0 + seconds:\n"
            + body + "    T.spent('huge', cpu() - t0)\n")


def generated(jump, statements, path):
    source = far_source(jump) + huge_source(statements)
    with open(path, "w", encoding="utf-8") as f:
        f.write(source)
    space = {"R": range(500)}
    exec(compile(source, path, "exec"), space)
    return space["far"], space["huge"]


def codes(code):
    """This code object and all that it holds."""
    yield {"name": code.co_name, "file": code.co_filename, "first_line": code.co_firstlineno, "lines": _case.code_lines(code)}
    for const in code.co_consts:
        if hasattr(const, "co_consts"):
            yield from codes(const)


def main():
    global SECONDS
    p = _case.parser(__doc__)
    p.add_argument("seconds", nargs="?", type=float, default=SECONDS, metavar="SECONDS", help="of each (default 0.2)")
    p.add_argument("--statements", type=int, default=20000, help="of the huge function (default 20000)")
    args = p.parse_args()
    SECONDS = args.seconds
    folder = "" if args.truth else tempfile.mkdtemp(prefix="lines-")
    path = os.path.abspath(args.truth) + ".generated.py" if args.truth else os.path.join(folder, "generated.py")
    far, huge = generated(300, args.statements, path)
    _case.ready(args)
    for fn in (spread, backward, handlers, quiet, raises, decorated, decorator_above, links, text, looped):
        fn()
    far(T, cpu, args.seconds)
    huge(T, cpu, 5 * args.seconds)
    code = huge.__code__
    every = list(codes(sys._getframe(1).f_code)) + list(codes(far.__code__)) + list(codes(code))
    T.write(args, generated=path, codes=every, line_table_bytes=len(getattr(code, "co_linetable", None) or code.co_lnotab))
    if folder:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
