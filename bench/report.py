#!/usr/bin/env python3
"""Make RESULTS.md from results/accuracy.jsonl, results/overhead.jsonl and results/notes.md (hand-written findings)."""
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
ORDER = ["ours", "otel", "pyspy", "pyspy-nb", "pyspy-native", "austin", "austinp", "tachyon", "pyinstrument", "cprofile"]
VERS = ["3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15"]


def load(name):
    p = "%s/results/%s" % (HERE, name)
    if not os.path.exists(p):
        return []
    with open(p, encoding="utf-8") as f:
        return [json.loads(x) for x in f if x.strip()]


def table(head, rows):
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    out += ["| " + " | ".join("" if c is None else str(c) for c in r) + " |" for r in rows]
    return "\n".join(out) + "\n"


def rank(p):
    return ORDER.index(p) if p in ORDER else 99


def acc_section(acc):
    last = {(d["profiler"], d["workload"], d["py"]): d for d in acc}
    profs = sorted({k[0] for k in last}, key=rank)
    vers = [v for v in VERS if any(k[2] == v for k in last)]
    out = []

    def grid(title, w, cell, note=""):
        rows = []
        for p in profs:
            r = [cell(last[(p, w, v)]) if (p, w, v) in last else "" for v in vers]
            if any(r):
                rows.append([p] + r)
        if rows:
            out.append("### %s\n\n%s\n%s" % (title, note, table(["profiler"] + vers, rows)))

    def f(d, *keys):
        if d.get("failed"):
            return "FAIL"
        return " / ".join("-" if d.get(k) is None else ("%g" % d[k] if isinstance(d[k], (int, float)) else str(d[k]))
                          for k in keys)

    grid("whole chain % / the same without interpreter trampoline frames (split; where both were measured)", "split",
         lambda d: f(d, "chain_ok", "chain_loose") if "chain_loose" in d else "")
    grid("split: share error, 3 standard errors (at least 2), line share error (points)", "split",
         lambda d: f(d, "share_err", "se3", "line_err"))
    for w in ("split", "deep", "gen", "native", "unicode", "gc"):
        grid("%s: leaf line ok %% / hot by the workload's own clock %%" % w, w, lambda d: f(d, "leaf_line_ok", "leaf_true_pct"))
    for w in ("split", "deep", "threads", "native", "gen", "coroutines", "unicode", "gc"):
        grid("%s: share err (points) / whole chain % / leaf line ok % / call line ok % / bad edge %" .replace("%s", w, 1), w,
             lambda d: f(d, "share_err", "chain_ok", "leaf_line_ok", "call_line_ok", "bad_edge"))
    grid("deep: truncated % / unknown frame % / no Python frame % / deepest stack seen", "deep",
         lambda d: f(d, "truncated", "unknown", "no_python", "max_depth"))
    grid("threads: thread share error (points) / samples per (rate x CPU s)", "threads",
         lambda d: f(d, "thread_err", "rate_ratio"))
    grid("native: right C function between the Python frames % (named %) / at the leaf % (named %) / misplaced %", "native",
         lambda d: f(d, "c_between_ok", "c_between_named", "c_leaf_ok", "c_leaf_named", "c_misplaced"))
    for w in ("subproc (fork + spawn children of 0.25 s)", "imports (exec'd processes of 0.3 s)"):
        grid("%s: seen burning / samples per (rate x CPU s of the processes) / whole chain %% / no Python frame after the first, "
             "and between first and last %%" % w, w.split()[0],
             lambda d: f(d, "kids_burn_seen", "kids_rate_ratio", "chain_ok", "no_python_started", "no_python_inside"))
    grid("sleepy (3 % CPU): samples / samples per (rate x CPU s) / share error", "sleepy",
         lambda d: f(d, "samples", "rate_ratio", "share_err"))
    grid("churn: samples with the dynamic function % / of these consistent % / running at that time % / whole chain % / bad edge %",
         "churn", lambda d: f(d, "churn_named", "churn_ok", "churn_alive_ok", "chain_ok", "bad_edge"))
    fails = [[d["profiler"], d["workload"], d["py"], d["failed"].replace("|", "/").replace("\n", " ")[:160]]
             for d in last.values() if d.get("failed")]
    if fails:
        out.append("### Failed runs\n\n" + table(["profiler", "workload", "py", "why"], sorted(fails)))
    exits = [[d["profiler"], d["workload"], d["py"], d["exit"]] for d in last.values() if d.get("exit")]
    if exits:
        out.append("### Runs that left output but ended with an error code\n\n" + table(
            ["profiler", "workload", "py", "exit"], sorted(exits)))
    edges = [[d["profiler"], d["workload"], d["py"], ", ".join("%s x%d" % tuple(x) for x in d["bad_edges_top"])]
             for d in last.values() if d.get("bad_edges_top")]
    if edges:
        out.append("### Impossible caller>callee pairs seen\n\n" + table(["profiler", "workload", "py", "pairs"], sorted(edges)))
    return "\n".join(out)


def ovh_section(o):
    out = []
    s = [d for d in o if d["what"] == "slowdown"]
    if s:
        rows = [[d["workload"], d["py"], d["rate"], d["profiler"], d["wall_pct"], d.get("wall_ci95"), d["cpu_pct"],
                 d.get("cpu_ci95"), d["n"], d["base_cpu_spread_pct"]]
                for d in sorted(s, key=lambda d: (d["workload"], d["py"], d["rate"], rank(d["profiler"])))]
        out.append("### Slowdown of the target (fixed work, medians, arms in random order)\n\n" + table(
            ["workload", "py", "Hz", "profiler", "wall +%", "95 %", "CPU +%", "95 %", "runs", "spread of bare CPU %"], rows))
    s = [d for d in o if d["what"] == "ab" and not d.get("failed")]
    if s:
        out.append("### Work lost while sampling is on (one process, blocks of on and off)\n\n" + table(
            ["py", "Hz", "profiler", "work lost %", "95 %", "per CPU second %", "95 %", "slices on / off", "switched by"],
            [[d["py"], d["rate"], d["profiler"], d["work_lost_pct"], d["work_lost_ci95"], d["per_cpu_lost_pct"],
              d["per_cpu_lost_ci95"], "%d / %d" % (d["slices_on"], d["slices_off"]), d["toggle"]] for d in s]))
    s = list({(d["profiler"], d["rate"], d["procs"]): d for d in o if d["what"] == "self"}.values())
    if s:
        rows = [[d["procs"], d["rate"], d["profiler"], d["cpu_pct_core"], d["rss_mib"], d.get("bpf_pct_core"),
                 d.get("bpf_runs"), d.get("first_export_cpu_s"), d.get("first_export_s"), d.get("startup_cpu_s"), d["target_cpu_pct_core"], d.get("wire_bytes")]
                for d in sorted(s, key=lambda d: (d["procs"], d["rate"], rank(d["profiler"])))]
        out.append("### The profiler's own cost (py 3.11, split)\n\n" + table(
            ["python processes", "Hz", "profiler", "CPU % of a core", "peak RSS MiB", "BPF % of a core", "BPF runs",
             "CPU s to the first export", "after s", "CPU s of the first 3 s", "targets' CPU % of a core", "bytes sent in all"], rows))
        for d in s:
            if d.get("bpf_progs"):
                out.append("BPF programs (%s, %d Hz, %d procs): %s\n" % (d["profiler"], d["rate"], d["procs"], ", ".join(
                    "%s %d runs x %d ns" % (k, v[0], v[1]) for k, v in d["bpf_progs"].items())))
    s = [d for d in o if d["what"] == "first"]
    if s:
        out.append("### From start to the first export that holds a sample of the target\n\n" + table(
            ["profiler", "reporter interval", "seconds (median)", "runs"],
            [[d["profiler"], d["interval"], d.get("seconds_to_target"), d["n"]] for d in s]))
    return "\n".join(out)


def main():
    notes = ""
    p = HERE + "/results/notes.md"
    if os.path.exists(p):
        notes = open(p, encoding="utf-8").read()
    hi = load("accuracy-999.jsonl")
    hi_txt = "\n## At 999 Hz (py 3.11)\n\n" + table(
        ["profiler", "workload", "samples", "samples / (rate x CPU s)", "share err", "whole chain %", "leaf line ok %"],
        [[d["profiler"], d["workload"], d.get("samples"), d.get("rate_ratio"), d.get("share_err"), d.get("chain_ok"),
          d.get("leaf_line_ok")] for d in hi]) if hi else ""
    txt = "# Rival profilers on Python: measured\n\n%s\n\n## Accuracy\n\n%s\n\n%s\n## Overhead\n\n%s\n" % (
        notes, acc_section(load("accuracy.jsonl")), hi_txt, ovh_section(load("overhead.jsonl")))
    with open(HERE + "/RESULTS.md", "w", encoding="utf-8") as f:
        f.write(txt)


if __name__ == "__main__":
    main()
