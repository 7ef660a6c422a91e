#!/usr/bin/env python3
"""Run profilers x workloads x Python versions, score each and append to results/accuracy.jsonl.

    accuracy.py --profilers pyspy,ours --pythons 3.8,3.11 --workloads split,native [--rate 499] [--seconds 10]
                [--seed N] [--syms FILE] [--keep DIR] [--together]

System-wide agents (ours) run once for the whole list, which begins when the agent has exported a sample of a warm-up
process (overhead.py first measures its start); the others are attached to each workload while it waits
at its gate.  The list (Python x workload) is shuffled by the seed, which is printed and kept in each line.  --pythons takes
paths too (a venv with numpy, say).  --keep leaves each run's truth and the profiler's raw output and log in
DIR/PROFILER-PYTHON-WORKLOAD, and a system-wide agent's sink folder in DIR/PROFILER.
--together runs all cells of a system-wide agent at the same time, so that each works beside that many busy processes;
their lines have "together", the number of cells, and one line more, the workload "all", has the rate of their sum.
A profiler that fails leaves a line with "failed".
"""
import argparse
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import profilers as P          # noqa: E402
from score import score        # noqa: E402

ALL = "split deep threads native gen subproc imports sleepy churn coroutines unicode gc ".split()
SYSTEM = ("ours",)


def start(workload, py, seconds, tmp, name=""):
    g, truth = tmp + "/gate" + name, tmp + "/truth%s.json" % name
    for f in (g, g + ".ready", truth):
        if os.path.exists(f):
            os.unlink(f)
    p = subprocess.Popen([P.python(py), "%s/workloads/%s.py" % (HERE, workload), "--seconds", str(seconds), "--gate", g,
                          "--truth", truth], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    P.wait_file(g + ".ready")
    return p, int(open(g + ".ready").read()), g, truth


def finish(p, truth, secs):
    try:
        err = p.communicate(timeout=secs)[1]
    except subprocess.TimeoutExpired:
        p.kill()
        raise RuntimeError("workload hung (killed)")
    if not os.path.exists(truth):
        raise RuntimeError("workload died: %s" % err.decode("utf-8", "replace")[-300:])
    with open(truth) as f:
        return json.load(f)


def run_attached(prof, w, py, a, tmp):
    p, pid, g, truth = start(w, py, a.seconds, tmp)
    out = tmp + "/out"
    for f in [out] + glob.glob(out + "_*"):
        if os.path.exists(f):
            os.unlink(f)
    log = open(tmp + "/prof.log", "w")
    q = subprocess.Popen(P.attach_cmd(prof, pid, a.rate, out, w in ("subproc", "imports")), stdout=log, stderr=log)
    time.sleep(1.5)
    open(g, "w").close()
    try:
        t = finish(p, truth, a.seconds * 4 + 30)
    finally:
        try:
            q.wait(8)
        except subprocess.TimeoutExpired:
            q.send_signal(signal.SIGINT)
            try:
                q.wait(8)
            except subprocess.TimeoutExpired:
                q.kill()
    rec = P.read_attach(prof, out, pid)
    if not rec:
        tail = [x for x in open(tmp + "/prof.log", errors="replace").read().splitlines() if x.strip()]
        tail = [x for x in tail if any(y in x for y in ("annot", "rror", "nsupported", "ailed"))] or tail[-2:]
        raise RuntimeError("rc %s, no output: %s" % (q.returncode, " | ".join(tail)[:200]))
    s = score(rec, t, a.rate, a.syms)
    if q.returncode not in (0, None):
        s["exit"] = q.returncode
    return s


def warmed(prof, rate, out, exe, tmp, interval="1s"):
    """The agent, once it has exported a sample of a process that works meanwhile (or 30 s are over)."""
    p = subprocess.Popen([exe, HERE + "/workloads/steady.py", tmp + "/warm"])
    try:
        s = P.System(prof, rate, out, interval=interval, pids=[p.pid])
        s.wait_first()
    finally:
        p.kill()
        p.wait()
    return s


def in_turn(a, order, tmp, failed):
    """[(workload, Python, truth), ...] of the cells, one after the other."""
    truths = []
    for py, w in order:
        p, pid, g, truth = start(w, py, a.seconds, tmp)
        time.sleep(0.7)
        open(g, "w").close()
        try:
            truths.append((w, py, finish(p, truth, a.seconds * 4 + 30)))
            keep(a, "ours", py, w, [truth])
        except RuntimeError as e:
            failed(w, py, e)
    return truths


def at_once(a, order, tmp, failed):
    """The same with all gates opened together: each for its share of the processors, so for as much longer."""
    seconds = a.seconds * max(1.0, len(order) / os.cpu_count())
    cells = [(w, py, start(w, py, seconds, tmp, str(i))) for i, (py, w) in enumerate(order)]
    time.sleep(2)
    for _, _, (_, _, g, _) in cells:
        open(g, "w").close()
    truths = []
    for w, py, (p, _, _, truth) in cells:
        try:
            truths.append((w, py, finish(p, truth, seconds * 2 + 60)))
            keep(a, "ours", py, w, [truth])
        except RuntimeError as e:
            failed(w, py, e)
    return truths


def summed(scores, truths, rate):
    """The rate of the sum of processes: samples of all over rate times CPU seconds of all (cells without children)."""
    cpu = sum(t["process_cpu_seconds"] for _, _, t in truths if not t.get("children"))
    n = sum(s["samples"] for s, (_, _, t) in zip(scores, truths) if not t.get("children"))
    return {"samples": n, "cpu_seconds": round(cpu, 1), "rate_ratio": round(n / (rate * cpu), 4) if cpu else None}


def keep(a, prof, py, w, files):
    """Copy a run's raw files to --keep."""
    if a.keep:
        d = os.path.join(a.keep, "%s-%s-%s" % (prof, py.strip("/").replace("/", "_"), w))
        os.makedirs(d, exist_ok=True)
        for f in files:
            if os.path.exists(f):
                shutil.copy(f, d)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--profilers", default="ours")
    ap.add_argument("--pythons", default="3.8,3.11,3.12,3.13")
    ap.add_argument("--workloads", default=",".join(ALL))
    ap.add_argument("--rate", type=int, default=499)
    ap.add_argument("--seconds", type=float, default=10)
    ap.add_argument("--seed", type=int, default=None, help="of the run order (default: a new one)")
    ap.add_argument("--syms", help="JSON {library: [[start, end, name], ...]} for score.py")
    ap.add_argument("--together", action="store_true", help="all cells of a system-wide agent at the same time")
    ap.add_argument("--keep", help="leave the raw outputs here")
    ap.add_argument("--out", default=HERE + "/results/accuracy.jsonl")
    a = ap.parse_args()
    a.out = os.path.abspath(a.out)
    os.makedirs(os.path.dirname(a.out), exist_ok=True)
    if a.syms:
        with open(a.syms) as f:
            a.syms = json.load(f)
    if a.seed is None:
        a.seed = random.SystemRandom().randrange(1 << 31)
    order = [(py, w) for py in a.pythons.split(",") for w in a.workloads.split(",")]
    random.Random(a.seed).shuffle(order)
    print("seed %d: %s" % (a.seed, " ".join("%s/%s" % x for x in order)), flush=True)
    tmp = tempfile.mkdtemp(prefix="acc-")
    res = open(a.out, "a")

    def put(prof, w, py, s):
        s = dict(s, profiler=prof, workload=w, py=py, rate=a.rate, seed=a.seed)
        if a.together:
            s["together"] = len(order)
        res.write(json.dumps(s, ensure_ascii=False) + "\n")
        res.flush()
        print(prof, w, py, {k: v for k, v in s.items() if k in (
            "samples", "share_err", "chain_ok", "leaf_line_ok", "bad_edge", "no_python", "unknown", "kids_seen",
            "failed", "churn_ok", "c_between_ok", "thread_err", "rate_ratio", "leaf_true_pct", "se3", "kids_burn_seen",
            "kids_rate_ratio", "no_python_started", "churn_alive_ok") and v is not None}, flush=True)

    for prof in a.profilers.split(","):
        if prof in SYSTEM:
            sysd = tmp + "/" + prof
            s = warmed(prof, a.rate, sysd, P.python(order[0][0]), tmp)
            run = at_once if a.together else in_turn
            truths = run(a, order, tmp, lambda w, py, e: put(prof, w, py, {"failed": str(e)}))
            s.stop()
            by = s.decode()
            scores = []
            for w, py, t in truths:
                rec = list(by.get(t["pid"], []))
                for k in t.get("children", []):
                    rec += by.get(k["pid"], [])
                scores.append(score(rec, t, a.rate, a.syms))
                put(prof, w, py, scores[-1])
            put(prof, "all", "all", summed(scores, truths, a.rate))
            shutil.copy(sysd + "/summary.json", os.path.join(os.path.dirname(a.out), "summary-%s.json" % prof))
            if a.keep:
                shutil.copytree(sysd, os.path.join(a.keep, prof), dirs_exist_ok=True)
            continue
        for py, w in order:
            try:
                put(prof, w, py, run_attached(prof, w, py, a, tmp))
            except Exception as e:          # noqa: BLE001 - a failing rival is a result
                put(prof, w, py, {"failed": str(e)[:300]})
            keep(a, prof, py, w, glob.glob(tmp + "/out*") + [tmp + "/truth.json", tmp + "/prof.log"])
    shutil.rmtree(tmp, ignore_errors=True)


if __name__ == "__main__":
    main()
