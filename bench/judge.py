#!/usr/bin/env python3
"""Hold the lines of accuracy.py against what is promised, and write them as a result file.

    judge.py FILE.jsonl ... --out RESULT.txt      ends with 1 if any cell breaks a rule

The rules, for each cell (workload x Python): at least 5,000 samples; the whole chain in 99.5 % of the samples of a known
leaf; call lines 100 %; leaf lines as many as the workload's own clock says, less 3 standard errors and the clock's own
error (0.1 point: how much of a read falls before and after the moment it tells is not known), pooled over all cells within
that error; no impossible edge, no unknown frame; shares within 3 standard errors (never tighter than 2 points), thread shares too; the rate within 3 standard
errors, that of the sum of cells run together within 3 %; of children 95 % seen with their own function, and at most 1 %
of samples without Python frames between their first and last one with them (an interpreter that starts is in C code
between two runs of Python code: its thread state has no frame then); churn frames consistent and alive 100 %. Over all cells
the mean error of the largest share within 0.5 point. A figure that is not there breaks its rule.
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import time

ENOUGH = 5000
NO_FRAME_AT_START = 1.0                 # per cent
CLOCK_ERROR = 0.1                       # points
THREADED = ("threads", "coroutines")
WITH_CHILDREN = ("subproc", "imports")
COLUMNS = ("samples chain_ok call_line_ok leaf_line_ok leaf_true_pct bad_edge unknown share_err se3 thread_err rate_ratio "
           "kids_burn_pct no_python_inside churn_ok churn_alive_ok").split()


def errors(d):
    """What the cell breaks, in words."""
    if d.get("failed"):
        return ["failed: " + d["failed"]]
    w, n, broken = d["workload"], d["samples"], []

    def rule(name, holds):
        v = d.get(name)
        if v is None or not holds(v):
            broken.append("%s %s" % (name, v))

    def se(share):
        return 100 * 3 * (share * (1 - share) / n) ** 0.5

    rule("samples", lambda v: v >= ENOUGH)
    rule("chain_ok", lambda v: v >= 99.5)
    rule("bad_edge", lambda v: v == 0)
    rule("unknown", lambda v: v == 0)
    rule("share_err", lambda v: v <= d["se3"])
    if w != "churn":
        rule("call_line_ok", lambda v: v == 100)
    if d.get("leaf_true_pct") is not None:
        true = d["leaf_true_pct"] / 100
        rule("leaf_line_ok", lambda v: v >= d["leaf_true_pct"] - se(true) - CLOCK_ERROR)
    if w in THREADED:
        rule("thread_err", lambda v: v <= max(2.0, se(0.5)))
    if w in WITH_CHILDREN:
        rule("kids_burn_pct", lambda v: v >= 95)
        rule("no_python_inside", lambda v: v <= NO_FRAME_AT_START)
    else:
        rule("rate_ratio", lambda v: abs(v - 1) <= 3 / n ** 0.5)
    if w == "churn":
        rule("churn_ok", lambda v: v == 100)
        rule("churn_alive_ok", lambda v: v == 100)
    return broken


def line(d):
    cells = ["%s=%s" % (k, d[k]) for k in COLUMNS if d.get(k) is not None]
    return "%-11s %-20s %s" % (d["workload"], d.get("python", d["py"]) + " " + d["py"], " ".join(cells))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("files", nargs="+")
    ap.add_argument("--out", required=True)
    a = ap.parse_args()
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
    out = ["commit %s  %s  kernel %s  %d processors" % (commit, time.strftime("%Y-%m-%d"), platform.release(),
                                                        os.cpu_count())]
    bad = 0
    for file in a.files:
        with open(file, encoding="utf-8") as f:
            lines = [json.loads(x) for x in f if x.strip()]
        cells = [d for d in lines if d["workload"] != "all"]
        together = cells[0].get("together") if cells else None
        out.append("\n%d cells at %d Hz, %s, seed %d" % (
            len(cells), cells[0]["rate"], "all at the same time" if together else "one after the other", cells[0]["seed"]))
        biases, leafs = [], []
        for d in sorted(cells, key=lambda d: (d["workload"], d["py"])):
            broken = errors(d)
            bad += bool(broken)
            out.append(line(d) + (("\n    BROKEN: " + "; ".join(broken)) if broken else ""))
            if d.get("shares"):
                got, true = max(d["shares"].values(), key=lambda x: x[1])
                biases.append(got - true)
            if d.get("leaf_true_pct") is not None and d.get("leaf_line_ok") is not None:
                leafs.append((d["samples"], d["leaf_line_ok"] - d["leaf_true_pct"]))
        pooled = sum(n * x for n, x in leafs) / max(sum(n for n, _ in leafs), 1)
        bad += pooled < -CLOCK_ERROR
        out.append("leaf lines, pooled: %+.3f points of the clock's figure over %d samples%s" % (
            pooled, sum(n for n, _ in leafs), "" if pooled >= -CLOCK_ERROR else "  BROKEN"))
        bias = sum(biases) / len(biases)
        bad += abs(bias) > 0.5
        out.append("mean error of the largest share: %+.2f points over %d cells%s" % (
            bias, len(biases), "" if abs(bias) <= 0.5 else "  BROKEN"))
        for d in lines:
            if d["workload"] == "all" and together:
                ok = d["rate_ratio"] is not None and abs(d["rate_ratio"] - 1) <= 0.03
                bad += not ok
                out.append("the sum of processes: %d samples in %s CPU seconds, rate_ratio=%s%s" % (
                    d["samples"], d["cpu_seconds"], d["rate_ratio"], "" if ok else "  BROKEN"))
    out.append("\n%d broken" % bad)
    with open(a.out, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")
    print("\n".join(out))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
