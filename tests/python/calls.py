"""Every way in which one Python function comes to run another; each place burns about SECONDS of CPU time in `burn`.

Truth: the chains of each place, root first, are what the interpreter shows at that moment. Where C code stands between two
Python frames (sorted, a property, a generator's send, ...), and where the interpreter specialises a call after some rounds
(`__init__`), the chain is the same as ever: no frame of the interpreter's own may be in it.
"""
import contextlib
import functools
import threading

import _case
from _case import cpu

T = _case.Truth(__file__)
SECONDS = 0.1
LOCK = threading.Lock()


def burn(key):
    """A round of a few milliseconds at most; enough rounds make SECONDS."""
    T.saw(key, (3, 4))
    x, t0 = 0, cpu()
    for i in range(4000):
        x = (x * 3 + i) & 0xFFFF
    T.spent(key, cpu() - t0)
    return x


def enough(key):
    return key in T.d["functions"] and T.d["functions"][key]["seconds"] >= SECONDS


class Made:
    def __init__(self, key):
        self.value = burn(key)


class Derived(Made):
    def __init__(self, key):
        super().__init__(key)


class Meta(type):
    def __call__(cls, key):
        burn(key)
        return super().__call__()


class ByMeta(metaclass=Meta):
    pass


class Holder:
    @property
    def value(self):
        return burn("property")

    @staticmethod
    def static():
        return burn("static")

    @classmethod
    def of(cls):
        return burn("class")

    def __getattr__(self, name):
        return burn("getattr")

    def __len__(self):
        return burn("len") & 1

    def __add__(self, other):
        return burn("add")

    def __iter__(self):
        yield burn("iter")

    def __enter__(self):
        return burn("enter")

    def __exit__(self, *_):
        burn("exit")

    def __del__(self):
        burn("del")

    def __call__(self):
        return burn("call")


def made():
    while not enough("init"):
        Made("init")


def derived():
    while not enough("super"):
        Derived("super")


def meta():
    while not enough("meta"):
        ByMeta("meta")


def methods():
    holder = Holder()
    while not enough("call"):
        holder.value
        holder.static()
        holder.of()
        holder.missing
        len(holder)
        holder + 1
        list(holder)
        with holder:
            pass
        Holder()
        holder()


def by_key(_):
    return burn("sorted")


def c_code():
    while not enough("sorted"):
        sorted([1], key=by_key)
        list(map(lambda _: burn("map"), [1]))
        functools.reduce(lambda _, b: burn("reduce"), [1, 2])
        functools.partial(burn, "partial")()


def inner(n):
    yield burn("generator")
    yield n


def outer(n):
    yield from inner(n)


def generators():
    while not enough("generator"):
        for _ in outer(2):
            pass
        [burn("listcomp") for _ in (1,)]
        sum(burn("genexpr") for _ in (1,))
        {burn("dictcomp"): 1 for _ in (1,)}


@contextlib.contextmanager
def managed():
    burn("managed")
    yield


def decorate(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper


@decorate
def decorated():
    return burn("decorated")


def closures():
    code = compile("def made_by_exec():\n    return burn('exec')\nmade_by_exec()\n", "<made by exec>", "exec")
    while not enough("exec"):
        with managed():
            pass
        decorated()
        exec(code, {"burn": burn})
        try:
            raise ValueError
        except ValueError:
            burn("handler")
        finally:
            burn("finally")


def many_arguments(*args, **kwargs):
    return burn(kwargs["key"])


def arguments():
    while not enough("arguments"):
        many_arguments(*range(20), key="arguments")


def in_thread():
    while not enough("thread"):
        Made("thread")


def main():
    global SECONDS
    p = _case.parser(__doc__)
    p.add_argument("seconds", nargs="?", type=float, default=0.1, metavar="SECONDS", help="CPU seconds a place (default 0.1)")
    args = p.parse_args()
    SECONDS = args.seconds
    _case.ready(args)
    for place in (made, derived, meta, methods, c_code, generators, closures, arguments):
        place()
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    T.write(args)


if __name__ == "__main__":
    main()
