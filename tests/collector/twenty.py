"""Twenty mixed processes into the real Collector: samples taken = exported = in the Collector's file.

    twenty.py EXPORTER COLLECTOR [--seconds 300] [--rate 99] [--result FILE]

Every workload of WORKLOADS on every interpreter of this machine works for the given time under one `run`. EXPORTER is
a debug build, which checks each of its requests by the project's validator and logs what breaks a rule. The result is
one line of figures a process, from the Collector's own file, and the sums; exit 1 unless they are equal.
"""
import argparse
import collections
import glob
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORKLOADS = ["split", "threads", "gen", "deep", "churn"]
VERSIONS = ["3.11.7", "3.12.1", "3.13.0"]


def interpreters():
    found = [os.path.expanduser("~/.pyenv/versions/%s/bin/python3" % v) for v in VERSIONS] + ["/usr/bin/python3.11"]
    return [path for path in found if os.path.exists(path)]


def free_address():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % s.getsockname()[1]


def wait(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit("not within %d s: %s" % (seconds, what))
        time.sleep(0.05)


def healthy(address):
    try:
        return urllib.request.urlopen("http://%s/" % address, timeout=2).status == 200
    except OSError:
        return False


def value(attribute, strings):
    v = attribute.get("value", {})
    if "stringValueStrindex" in v:
        return strings[v["stringValueStrindex"]]
    return str(v.get("intValue", v.get("stringValue", "")))


def by_process(path):
    """{(pid, service, runtime version): samples} of the Collector's JSON file."""
    counts = collections.Counter()
    with open(path) as lines:
        for line in lines:
            data = json.loads(line)
            strings = data["dictionary"]["stringTable"]
            for resource in data["resourceProfiles"]:
                facts = {a.get("key") or strings[a["keyStrindex"]]: value(a, strings)
                         for a in resource["resource"]["attributes"]}
                who = (int(facts["process.pid"]), facts.get("service.name", ""), facts.get("process.runtime.version", ""))
                for scope in resource["scopeProfiles"]:
                    for profile in scope["profiles"]:
                        counts[who] += sum(len(s.get("timestampsUnixNano", ())) for s in profile.get("samples", ()))
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exporter")
    parser.add_argument("collector")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--rate", type=int, default=99)
    parser.add_argument("--result")
    args = parser.parse_args()
    out = tempfile.mkdtemp(prefix="twenty-")
    grpc, http, health = free_address(), free_address(), free_address()
    started = []
    try:
        env = dict(os.environ, OTELCOL_DIR=out, OTELCOL_GRPC=grpc, OTELCOL_HTTP=http, OTELCOL_HEALTH=health)
        collector = subprocess.Popen([args.collector, "--feature-gates=service.profilesSupport", "--config",
                                      ROOT + "/otel-collector/collector.yaml"], env=env, stdout=subprocess.DEVNULL,
                                     stderr=open(out + "/collector.log", "w"))
        started.append(collector)
        wait("the Collector is healthy", lambda: healthy(health))
        targets = []
        for python in interpreters():
            for workload in WORKLOADS:
                name = "%s-%d" % (workload, len(targets))
                p = subprocess.Popen([python, "%s/bench/workloads/%s.py" % (ROOT, workload), "--seconds", str(args.seconds),
                                      "--truth", "%s/%s.json" % (out, name)], stdout=subprocess.DEVNULL,
                                     env=dict(os.environ, OTEL_SERVICE_NAME=name))
                targets.append((name, p))
                started.append(p)
        exporter = subprocess.Popen([args.exporter, "run", "--rate", str(args.rate), "--interval", "5s", "--endpoint",
                                     "http://" + grpc] + [a for _, p in targets for a in ("--pid", str(p.pid))],
                                    env=dict(os.environ, NO_COLOR="1"), stderr=open(out + "/exporter.log", "w"))
        started.append(exporter)
        time.sleep(args.seconds)
        ended = exporter.poll()
        exporter.send_signal(signal.SIGTERM)
        code = exporter.wait(60)
        collector.send_signal(signal.SIGTERM)
        collector.wait(60)
    finally:
        for p in started:
            if p.poll() is None:
                p.kill()
                p.wait()
    log = open(out + "/exporter.log").read()
    last = [line for line in log.splitlines() if " stopped " in line][-1]
    taken, windows, accepted = (int(re.search(k + r"=(\d+)", last).group(1))
                                for k in ("samples_taken", "samples_aggregated", "samples_accepted"))
    findings = log.count("breaks a rule")
    counts = by_process(out + "/profiles.jsonl")
    arrived = sum(counts.values())
    seen = {(pid, name) for pid, name, _ in counts}
    missing = [name for name, p in targets if (p.pid, name) not in seen]
    lines = ["%s  kernel %s  %d s at %d Hz, %d processes, window 5 s" %
             (time.strftime("%Y-%m-%d", time.gmtime()), platform.release(), args.seconds, args.rate, len(targets)),
             "taken %d  in windows %d  accepted %d  in the Collector's file %d  validator findings %d" %
             (taken, windows, accepted, arrived, findings)]
    lines += ["%-10s CPython %-7s %6d samples" % (name, version, counts[pid, name, version])
              for pid, name, version in sorted(counts, key=lambda who: who[1])]
    text = "\n".join(lines)
    print(text)
    good = ended is None and code == 0 and taken == windows == accepted == arrived > 0 and not findings and not missing
    if not good:
        sys.exit("not equal, or missing %s; exporter ended with %s: %s" % (missing, code, log[-2000:]))
    if args.result:
        commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
        with open(args.result, "w") as f:
            f.write("commit %s  %s\n" % (commit, text))
    for path in glob.glob(out + "/*"):
        os.unlink(path)
    os.rmdir(out)


main()
