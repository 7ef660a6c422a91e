#!/usr/bin/env python3
"""How much CPU time a new process uses until its samples are named, on a quiet machine and beside busy processes.

    naming.py [--pythons 3.11,3.12,3.13,sys3.11] [--children 100] [--busy 0,20] [--rate 499] [--cpu-ms 300]

Children of workloads/newborn.py start one after the other under an exporter that runs already. Each knows its CPU time at
every moment of its wall clock, so the CPU time at its first sample with Python frames is known. It counts from exec: the
interpreter's own start, before its first Python frame, is in the figure, which is so an upper bound; one sampling period
is its resolution. A child without a named sample counts with all the CPU time it used.
Lines are appended to results/naming.jsonl.
"""
import argparse
import bisect
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import accuracy as A           # noqa: E402
import profilers as P          # noqa: E402


def child(exe, cpu_ms):
    out = subprocess.check_output([exe, HERE + "/workloads/newborn.py", str(cpu_ms)])
    return json.loads(out)


def cpu_at(clock, moment):
    """CPU ms of the process at a moment of the wall clock; before its first line, that of its first line."""
    i = bisect.bisect_left(clock, [moment])
    if i == 0:
        return clock[0][1] / 1e6
    if i == len(clock):
        return clock[-1][1] / 1e6
    (w0, c0), (w1, c1) = clock[i - 1], clock[i]
    return (c0 + (c1 - c0) * (moment - w0) / (w1 - w0)) / 1e6


def at(values, part):
    return round(sorted(values)[min(len(values) - 1, int(len(values) * part))], 1)


def measure(a, busy, tmp):
    pythons = a.pythons.split(",")
    others = [subprocess.Popen([P.python(pythons[i % len(pythons)]), HERE + "/workloads/split.py", "--seconds", "1e6"],
                               stdout=subprocess.DEVNULL) for i in range(busy)]
    try:
        time.sleep(1 + busy * 0.2)
        agent = A.warmed("ours", a.rate, tmp, P.python(pythons[0]), tmp)
        children = [child(P.python(pythons[i % len(pythons)]), a.cpu_ms) for i in range(a.children)]
        agent.stop()
    finally:
        for p in others:
            p.kill()
            p.wait()
    by = agent.decode()
    values, unnamed = [], 0
    for c in children:
        named = [t for r in by.get(c["pid"], []) if any(f[0] == "py" for f in r["frames"]) for t in r["ts"]]
        unnamed += not named
        values.append(cpu_at(c["clock"], min(named)) if named else c["clock"][-1][1] / 1e6)
    return {"what": "naming", "busy": busy, "children": len(children), "unnamed": unnamed, "rate": a.rate,
            "period_ms": round(1000 / a.rate, 1), "own_start_ms_median": at([c["clock"][0][1] / 1e6 for c in children], 0.5),
            "p50_ms": at(values, 0.5), "p95_ms": at(values, 0.95), "max_ms": at(values, 1)}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--pythons", default="3.11,3.12,3.13,sys3.11")
    ap.add_argument("--children", type=int, default=100)
    ap.add_argument("--busy", default="0,20", help="busy Python processes beside them")
    ap.add_argument("--rate", type=int, default=499)
    ap.add_argument("--cpu-ms", type=int, default=300, help="CPU time of a child")
    ap.add_argument("--out", default=HERE + "/results/naming.jsonl")
    a = ap.parse_args()
    a.out = os.path.abspath(a.out)
    os.makedirs(os.path.dirname(a.out), exist_ok=True)
    for busy in [int(x) for x in a.busy.split(",")]:
        tmp = tempfile.mkdtemp(prefix="naming-")
        d = measure(a, busy, tmp)
        shutil.rmtree(tmp, ignore_errors=True)
        with open(a.out, "a") as f:
            f.write(json.dumps(d) + "\n")
        print(d, flush=True)


if __name__ == "__main__":
    main()
