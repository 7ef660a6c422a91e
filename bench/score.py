#!/usr/bin/env python3
"""Score stack records (see profilers.py) against a workload's truth (see workloads/_wl.py).

    score.py TRUTH.json KIND FILE [--rate R] [--syms FILE]
        KIND: pyspy, austin, tachyon (FILE: its output) or sink (its folder)
        --syms: JSON {library: [[start, end, name], ...]}, to name frames that come as library+0xoffset

Every figure is there, null where it can't be had; "notes" says why where that isn't plain from the workload.
Measures (percent of the samples inside the measured window, unless said otherwise):
  share_err      largest |measured - true| CPU share over the truth's functions, in percentage points; samples without
                 any known function count as lost share, so lost stacks show here; with children: of their CPU time,
                 start-up and exit included
  noise_2sd      2 standard errors of the largest function's share at this number of samples, in points
  se3            3 of them, but never below 2 points: what share_err may be by chance
  line_err       the same over the truth's line groups (split.py), in points
  chain_ok       samples with the whole expected Python chain, root to leaf, of those attributed to a known leaf
  chain_loose    the same with interpreter trampoline/shim frames left out;  max_depth: most Python frames in a stack
  leaf_line_ok   ... whose leaf line is one of the hot lines of that function
  leaf_true_pct  share of these leaves' CPU time inside their hot lines by the workload's own clock: what leaf_line_ok
                 should be (split, deep, gen, native, unicode, gc)
  call_line_ok   caller lines that are the known call site, of all call sites with a known line
  bad_edge       samples with a caller>callee pair (both in the workload's file) that can't be
  truncated      samples of a known leaf whose chain has lost its root end (a proper suffix of the truth)
  unknown        samples with an [unknown] / empty / error frame
  no_python      samples without any Python frame
  thread_err     largest error of CPU share by thread, in points (threads.py, coroutines.py)
  c_between_ok   mixed stacks: the right C function, or one of the right library, stands between the two right Python frames
  c_leaf_ok      mixed stacks: such a frame stands under the last Python frame
  c_between_named, c_leaf_named   the same for frames that name a function: one that comes as an address or as
                 library+0xoffset counts by its name in --syms only
  c_misplaced    mixed stacks: that C function is in the stack, but at a wrong spot
  kids_seen      short-lived children with any sample / children
  kids_burn_seen children with a sample of their own burning function / children;  kids_burn_pct: the same in percent
  kids_rate_ratio  samples of children / (rate * CPU seconds of their processes, start-up and exit included)
  no_python_started  no_python among a child's samples from its first one with Python frames on (frames of the parent that
                 forks don't count); needs timestamps;  no_python_inside: the same up to its last one with Python frames
                 (the interpreter's own shutdown has none)
  churn_ok       dyn_N frames that agree with their static path, file and line;  churn_named: samples that have one
  churn_alive_ok dyn_N frames with a timestamp, of functions that ran then (one period, or 10 ms, more or less)
  rate_ratio     samples / (rate * process CPU seconds)
"""
import collections
import json
import os
import re
import sys

SHIM = re.compile(r"trampoline|^0x0$|^<shim>$")       # the interpreter's entry frames, no function of the program
OFFSET = re.compile(r"^(?:(.*)\+)?0x([0-9a-fA-F]+)$")
FORKING = ("_execute_child", "spawnv_passfds", "_fork_exec")      # the parent's, seen in a child before its exec
FIGURES = ("samples share_err noise_2sd se3 shares line_err chain_ok chain_loose max_depth truncated leaf_line_ok "
           "leaf_true_pct call_line_ok bad_edge unknown no_python thread_err c_between_ok c_leaf_ok c_between_named "
           "c_leaf_named c_misplaced kids_seen kids_burn_seen kids_burn_pct kids_rate_ratio no_python_started "
           "no_python_inside churn_named churn_ok churn_bad churn_alive_ok rate_ratio bad_edges_top broken_chains_top "
           "notes").split()
UNKNOWN = re.compile(r"^$|^\[?unknown\]?$|^<unknown|UNREPORTED|:INVALID:|abort-marker|^\?+$|^<unnamed", re.I)


def bare(fn):
    """co_name of a function given by its qualified name."""
    if fn.startswith("<") and "." not in fn:
        return fn
    return fn.rsplit(".", 1)[-1] if not fn.endswith(">") else fn[fn.rfind("<"):] if "." in fn else fn


def churn_name(fn):
    return re.sub(r"^dyn_\d+$", "dyn", fn)


def pct(a, b):
    return round(100.0 * a / b, 2) if b else None


def window(records, t):
    """Samples in the measured window: by time where there are times, else by leaving out the gate and the writing."""
    lo, hi = t["window"]
    for r in records:
        n = r["n"]
        if r["ts"]:
            ts = [x for x in r["ts"] if lo <= x <= hi]
            if ts:
                yield dict(r, n=len(ts), w=r["w"] * len(ts) / r["n"], ts=ts)
            continue
        py = [f for f in r["frames"] if f[0] == "py"]
        if any(os.path.basename(f[2]) == "_wl.py" and bare(f[1]) in ("gate", "write") for f in py):
            continue
        yield r


def c_match(f, rx, syms, named):
    """Is it a native frame of the wanted function (or, unless named, of its library)?"""
    if f[0] != "native":
        return False
    m = OFFSET.match(f[1])
    name = f[1]
    if m:
        name, o = "", int(m.group(2), 16)
        lib = m.group(1) or f[2]
        for lo, hi, x in (syms or {}).get(lib) or (syms or {}).get(os.path.basename(lib)) or ():
            if lo <= o < hi:
                name = x
                break
    if named:
        return bool(name and rx.search(name))
    return bool(rx.search(name or f[1]) or rx.search(f[2]))


def lives(t):
    """[(start, end), ...] in epoch ns by number of the dynamic function (churn.py)."""
    c = t["churn"]
    t0 = c.get("t0", 0)
    return [(t0 + int(a) * 1000, t0 + (int(a) + int(b)) * 1000)
            for a, b in (x.split("+") for x in c.get("lives", "").split())]


def started(seen, out, notes):
    """no_python_started and no_python_inside from {child pid: [(timestamp, has Python frames), ...]}."""
    if any(ts is None for v in seen.values() for ts, _ in v):
        notes.append("no_python_started, no_python_inside left out: samples without timestamps")
        return
    c = collections.Counter()
    for v in seen.values():
        py = [ts for ts, has in v if has]
        for ts, has in v if py else ():
            if ts >= min(py):
                c["n"] += 1
                c["bad"] += not has
                c["n2"] += ts <= max(py)
                c["bad2"] += ts <= max(py) and not has
    out["no_python_started"] = pct(c["bad"], c["n"])
    out["no_python_inside"] = pct(c["bad2"], c["n2"])


def judge_chain(got, want, n, C, broken):
    """Count n samples with the Python chain `got` against the possible ones; its depth without shims."""
    C["chains"] += n
    loose = [x for x in got if not SHIM.search(x[0])]
    C["chain_loose"] += n if loose in want else 0
    if got in want:
        C["chain_ok"] += n
    elif any(len(loose) < len(c) and loose == c[-len(loose):] for c in want):
        C["truncated"] += n
    else:
        broken[" > ".join(a for a, _ in got)[-120:]] += n
    return len(loose)


def score(records, t, rate=None, syms=None):
    pid = t["pid"]
    kids = {k["pid"]: k for k in t.get("children", [])}
    base = {os.path.basename(x) for x in [t["file"]] + t.get("files", [])}       # the files of the workload itself
    keys = sorted({k.split(":")[0] for k in t["cpu"]})
    cpu = collections.Counter()
    for k, v in t["cpu"].items():
        cpu[k.split(":")[0]] += v
    # A function's share is that of its whole calls, not of its hot lines only, where the workload measured both.
    for k, (_, whole) in (t.get("leaf") or {}).items():
        if k in cpu:
            cpu[k] = max(cpu[k], whole)
    total_cpu = sum(k.get("proc_cpu", k.get("total_cpu", k["cpu"])) for k in kids.values()) if kids else (
        t["process_cpu_seconds"])
    edges = {tuple(e) for e in t["edges"]}
    marks = {k: set(v) for k, v in t["marks"].items()}
    edges |= {tuple(m[5:].rsplit(">", 1)) if not m.startswith("call:<module>") else ("<module>", m.rsplit(">", 1)[1])
              for m in marks if m.startswith("call:")} | {("<module>", "main")}
    chains = {k: [[(x[0], os.path.basename(x[1])) for x in c] for c in v] for k, v in t["chains"].items()}
    C = collections.Counter()
    W = collections.Counter()          # weight by leaf function
    L = collections.Counter()          # weight by line group
    TW = collections.Counter()         # weight by thread
    kid_n = collections.Counter()
    kid_burn = collections.Counter()
    kid_ts = collections.defaultdict(list)
    alive = lives(t) if "churn" in t else []
    slack = 1e9 / rate if rate else 1e7
    bad = collections.Counter()
    broken = collections.Counter()
    tot_w = 0.0
    depth = 0
    for r in records if kids else window(records, t):
        p = r["pid"]
        if p != pid and p not in kids:
            continue
        if kids and p not in kids:
            continue
        n, w = r["n"], r["w"]
        fr = r["frames"]
        py = [(bare(f[1]), os.path.basename(f[2]), f[3], i) for i, f in enumerate(fr) if f[0] == "py"]
        kid_n[p] += n
        C["n"] += n
        tot_w += w
        if any(UNKNOWN.search(f[1]) or f[0] == "trunc" for f in fr):
            C["unknown"] += n
        if kids:
            has = bool(py) and (kids[p].get("how") == "fork" or not any(x[0] in FORKING for x in py))
            kid_ts[p] += [(x, has) for x in r["ts"] or [None]]
        if not py:
            C["no_python"] += n
            continue
        mine = [(churn_name(a), b, c, i) for a, b, c, i in py if b in base or b.startswith("<churn")]
        # impossible edges: neighbours in the Python chain that are both the workload's
        flag = False
        for x, y in zip(py, py[1:]):
            if x[1] in base and y[1] in base:
                e = (x[0], y[0])
                if e not in edges and y[0] not in ("<listcomp>", "<genexpr>", "<lambda>", "<dictcomp>"):
                    flag = True
                    bad["%s>%s" % e] += n
                else:
                    m = marks.get("call:%s>%s" % e)
                    if m:
                        C["call_lines"] += n
                        C["call_ok"] += n if x[2] in m else 0
        if flag:
            C["bad_edge"] += n
        # churn
        if "churn" in t:
            names = [f for f in fr if re.match(r"^dyn_\d+$", bare(f[1]))]
            if names:
                f = names[-1]
                num = int(bare(f[1])[4:])
                bits = [x[0] for x in mine if x[0] in ("b0", "b1")]
                want = ["b%d" % ((num >> b) & 1) for b in (5, 4, 3, 2, 1, 0)]
                ok = bits == want
                okf = f[2] == "<churn-%d>" % num
                okl = f[3] in (1, 2, 3 + num % 50, 4 + num % 50)        # entry, cap(), loop, return
                C["churn_named"] += n
                C["churn_ok"] += n if ok and okf and okl else 0
                C["churn_path_bad"] += n if not ok else 0
                C["churn_file_bad"] += n if not okf else 0
                C["churn_line_bad"] += n if not okl else 0
                W["dyn"] += w
                if num < len(alive):
                    C["lives"] += len(r["ts"])
                    C["lives_ok"] += sum(1 for x in r["ts"] if alive[num][0] - slack <= x <= alive[num][1] + slack)
                elif alive:                # a number that was never reached
                    C["lives"] += len(r["ts"])
                want = chains.get("dyn/%d" % (num & 63))
                if want:
                    d = [i for i, x in enumerate(py) if x[0] == "dyn_%d" % num]
                    got = [(churn_name(x[0]), re.sub(r"^<churn-\d+>$", "<churn>", x[1]))
                           for x in (py[:d[-1] + 1] if d else py)]
                    depth = max(depth, judge_chain(got, want, n, C, broken))
            continue
        # innermost known function
        leaf = None
        for x in reversed(py):
            if x[1] in base and x[0] in cpu:
                leaf = x
                break
        if leaf is None:
            C["other"] += n
            continue
        k = leaf[0]
        W[k] += w
        C["attr"] += n
        kid_burn[p] += n
        for th, d in (t.get("threads") or {}).items():
            if r["thread"] == th or r["tid"] == d["tid"]:
                TW[th] += w
        hot = [m for m in marks if m == k or m.startswith(k + ":")]
        if hot:
            C["leaf_lines"] += n
            ok = False
            for m in hot:
                if leaf[2] in marks[m]:
                    ok = True
                    L[m] += w
            C["leaf_ok"] += n if ok else 0
        if k in chains:
            got = [(a, b) for a, b, _, _ in py[:py.index(leaf) + 1]]
            depth = max(depth, judge_chain(got, chains[k], n, C, broken))
        mx = (t.get("mixed") or {}).get(k)
        if mx:
            C["mixed"] += n
            li = leaf[3]
            if len(mx) >= 3:           # py, c, py[, c]
                drv = [x for x in py if x[0] == mx[0][1] and x[1] in base and x[3] < li]
                C["between"] += n
                rx = re.compile(mx[1][1])
                nat = [i for i, f in enumerate(fr) if c_match(f, rx, syms, False)]
                if drv and any(drv[-1][3] < i < li for i in nat):
                    C["between_ok"] += n
                    if any(drv[-1][3] < i < li and c_match(fr[i], rx, syms, True) for i in range(li)):
                        C["between_named"] += n
                elif any(i > li or (drv and i < drv[-1][3]) for i in nat):
                    C["misplaced"] += n
            if mx[-1][0] == "c":
                rx = re.compile(mx[-1][1])
                C["cleaf"] += n
                C["cleaf_ok"] += n if any(c_match(f, rx, syms, False) for f in fr[li + 1:]) else 0
                C["cleaf_named"] += n if any(c_match(f, rx, syms, True) for f in fr[li + 1:]) else 0
    n = C["n"]
    out = dict.fromkeys(FIGURES)
    out.update(workload=t["workload"], python=t["python"], samples=n)
    leafs = [v for k, v in (t.get("leaf") or {}).items() if k in keys]
    if leafs:
        out["leaf_true_pct"] = round(100 * sum(v[0] for v in leafs) / sum(v[1] for v in leafs), 2)
    if kids:
        out["kids_seen"] = "%d/%d" % (sum(1 for k in kids if kid_n[k]), len(kids))
        seen = sum(1 for k in kids if kid_burn[k])
        out["kids_burn_seen"], out["kids_burn_pct"] = "%d/%d" % (seen, len(kids)), pct(seen, len(kids))
    if not n:
        out["failed"] = "no samples of this process"
        return out
    notes = []
    tw = tot_w or 1
    denom = max(total_cpu, sum(cpu.values())) or 1
    errs = {k: round(100 * (W[k] / tw - cpu[k] / denom), 2) for k in keys}
    out["share_err"] = round(max(abs(v) for v in errs.values()), 1)
    worst = max(cpu[k] / denom for k in keys)
    out["noise_2sd"] = round(200 * (max(worst * (1 - worst), 0.0) / n) ** 0.5, 1)
    out["se3"] = max(2.0, round(300 * (max(worst * (1 - worst), 0.0) / n) ** 0.5, 1))
    out["shares"] = {k: [round(100 * W[k] / tw, 1), round(100 * cpu[k] / denom, 1)] for k in keys}
    groups = [k for k in t["cpu"] if ":" in k]
    if groups:
        out["line_err"] = round(max(abs(100 * (L[k] / tw - t["cpu"][k] / denom)) for k in groups), 1)
    out["chain_ok"] = pct(C["chain_ok"], C["chains"])
    out["chain_loose"] = pct(C["chain_loose"], C["chains"])
    out["max_depth"] = depth
    out["truncated"] = pct(C["truncated"], C["chains"])
    out["leaf_line_ok"] = pct(C["leaf_ok"], C["leaf_lines"])
    out["call_line_ok"] = pct(C["call_ok"], C["call_lines"])
    out["bad_edge"] = pct(C["bad_edge"], n)
    out["unknown"] = pct(C["unknown"], n)
    out["no_python"] = pct(C["no_python"], n)
    if t.get("threads"):
        s = sum(TW.values())
        whole = sum(W.values()) or 1
        out["thread_err"] = round(max(abs(100 * (TW[k] / whole - d["share"]))
                                      for k, d in t["threads"].items()), 1) if s else None
    if C["mixed"]:
        out["c_between_ok"] = pct(C["between_ok"], C["between"])
        out["c_leaf_ok"] = pct(C["cleaf_ok"], C["cleaf"])
        out["c_between_named"] = pct(C["between_named"], C["between"])
        out["c_leaf_named"] = pct(C["cleaf_named"], C["cleaf"])
        out["c_misplaced"] = pct(C["misplaced"], C["between"])
    if kids:
        if rate:
            out["kids_rate_ratio"] = round(sum(kid_n[k] for k in kids) / (rate * total_cpu), 3) if total_cpu else None
        started(kid_ts, out, notes)
    if "churn" in t:
        out["churn_named"] = pct(C["churn_named"], n)
        out["churn_ok"] = pct(C["churn_ok"], C["churn_named"])
        out["churn_alive_ok"] = pct(C["lives_ok"], C["lives"])
        if alive and not C["lives"]:
            notes.append("churn_alive_ok left out: samples without timestamps")
        out["churn_bad"] = {"path": C["churn_path_bad"], "file": C["churn_file_bad"], "line": C["churn_line_bad"]}
    if rate and not kids:
        out["rate_ratio"] = round(n / (rate * total_cpu), 3) if total_cpu else None
    if bad:
        out["bad_edges_top"] = bad.most_common(4)
    if broken:
        out["broken_chains_top"] = broken.most_common(2)
    if notes:
        out["notes"] = notes
    return out


def main():
    import argparse
    import profilers as P
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("truth")
    p.add_argument("kind")
    p.add_argument("file")
    p.add_argument("--rate", type=float)
    p.add_argument("--syms")
    a = p.parse_args()
    with open(a.truth) as f:
        t = json.load(f)
    rec = list(P.read_sink(a.file)) if a.kind == "sink" else P.read_attach(a.kind, a.file, t["pid"])
    print(json.dumps(score(rec, t, a.rate, json.load(open(a.syms)) if a.syms else None), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()
