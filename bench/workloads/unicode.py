"""Function and file names outside ASCII, one for each way in which CPython stores text (1, 2 and 4 bytes a character).

The functions café (Latin-1), 計算 (2 bytes) and 𠮷野 (4 bytes) are compiled under the path of a file with a non-ASCII
name, which is written to a temporary folder; вычислить is compiled under a made-up name in angle brackets.
Truth: "files" names both; the marks of the generated source count like those of this file.
"""
import os
import re
import shutil
import tempfile
import _wl
from _wl import cpu

T = _wl.Truth("unicode", __file__)
ON_DISK = (("café", 50), ("計算", 30), ("𠮷野", 15))
MADE_UP = (("вычислить", 5),)
BODY = '''def {0}(n):
    c0 = cpu()
    T.capture("{0}")
    x = 0
    t0 = cpu()
    for i in range(n):                          #@{0}
        x = (x * 3 + i) & 0xFFFF                #@{0}
    T.add("{0}", cpu() - t0)
    T.leaf("{0}", c0)


'''


def load(names, path):
    """The functions, compiled as if they stood in the file at path; their marks go into the truth."""
    src = "".join(BODY.format(n) for n, _ in names)
    for i, line in enumerate(src.splitlines(), 1):
        for m in re.findall(r"#@(\S+)", line):
            T.marks.setdefault(m, []).append(i)
    space = {"T": T, "cpu": cpu}
    exec(compile(src, path, "exec"), space)
    return src, [(space[n], share) for n, share in names]


def call(fn, n):
    fn(n)                                       #@call:call>café #@call:call>計算 #@call:call>𠮷野 #@call:call>вычислить


def main():
    a = _wl.args()
    folder = tempfile.mkdtemp(prefix="wl-unicode-")
    path = os.path.join(folder, "größe_模块.py")
    src, leafs = load(ON_DISK, path)
    with open(path.encode("utf-8"), "w", encoding="utf-8") as f:
        f.write(src)
    leafs += load(MADE_UP, "<вычисление>")[1]
    _wl.gate(a)
    end = _wl.wall() + a.seconds
    while (T.d["units"] < a.units) if a.units else (_wl.wall() < end):
        k = _wl.rng.randint(1, 30)
        for fn, share in leafs:
            call(fn, 10 * share * k)            #@call:main>call
        T.d["units"] += k
    T.write(a, files=[path, "<вычисление>"])
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()                                      #@call:<module>>main
