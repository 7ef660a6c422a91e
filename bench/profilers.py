"""How each profiler is started and how its output is read into one form.

A stack record is {"pid", "tid", "thread", "n": samples, "w": weight, "ts": [epoch ns] or [], "frames": [[kind, func,
file, line], ... root first]}; kind is "py", "native", "kernel", "gc" or "other".
Paths come from the environment (defaults are where README.md says).
"""
import collections
import glob
import json
import os
import re
import signal
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
R = os.environ.get("RIVALS", os.path.join(HERE, ".rivals"))
VENV = os.environ.get("BENCH_VENV", R + "/venv")                   # grpcio, grpcio-tools, py-spy
PYSPY = os.environ.get("PYSPY", VENV + "/bin/py-spy")
AUSTIN = os.environ.get("AUSTIN", R + "/austin")
AUSTINP = os.environ.get("AUSTINP", R + "/austinp")
MOJO = os.environ.get("MOJO2AUSTIN", VENV + "/bin/mojo2austin")
PY315 = os.environ.get("PY315", R + "/py315/usr/bin/python3.15")
PY314 = os.environ.get("PY314", R + "/py315/usr/bin/python3.14")
# The exporter under test: a command with {rate}, {port} and {interval}
OURS = os.environ.get("OURS", os.path.join(os.path.dirname(HERE), "target/release/otel-profile-exporter")
                      + " run --rate {rate} --endpoint http://127.0.0.1:{port} --interval {interval}")
PYENV = os.path.expanduser("~/.pyenv/versions")
PYTHONS = {"3.6": "3.6.15", "3.7": "3.7.16", "3.8": "3.8.18", "3.9": "3.9.18", "3.10": "3.10.13", "3.11": "3.11.7",
           "3.12": "3.12.1", "3.13": "3.13.0"}
LIB_DIRS = "/lib/x86_64-linux-gnu:/usr/bin:%s:%s/py315/usr" % (PYENV, R)


def python(v):
    """The interpreter for a short version, or for a path."""
    if "/" in v:
        return v
    return {"3.15": PY315, "3.14": PY314, "sys3.11": "/usr/bin/python3.11"}.get(v) or "%s/%s/bin/python3" % (PYENV, PYTHONS[v])


# ------------------------------------------------------------------ attach-style profilers
def attach_cmd(name, pid, rate, out, follow):
    us = int(1e6 / rate)
    if name.startswith("pyspy"):
        c = [PYSPY, "record", "-p", str(pid), "-f", "raw", "-o", out, "--full-filenames", "-t", "-r", str(rate)]
        c += ["-n"] if "native" in name else []
        c += ["--nonblocking"] if "nb" in name else []
        c += ["--idle"] if "idle" in name else []
        return c + (["-s"] if follow else [])
    if name in ("austin", "austinp", "austin-wall"):
        c = [AUSTINP if name == "austinp" else AUSTIN, "-i", "%dus" % us, "-o", out, "-p", str(pid)]
        c += [] if name == "austin-wall" else ["-c"]
        return c + (["-C"] if follow else [])
    if name.startswith("tachyon"):
        c = [PY315, "-m", "profiling.sampling", "attach", "-r", str(rate), "-a", "--collapsed", "-o", out]
        c += ["--mode", "wall" if "wall" in name else "cpu"]
        c += ["--native"] if "native" in name else []
        c += ["--blocking"] if "blocking" in name else []
        return c + (["--subprocesses"] if follow else []) + [str(pid)]
    raise KeyError(name)


def kind_of(file):
    if file.endswith((".py", ".pyc")) or file.startswith("<") or file.startswith("/") and file.endswith(".pyx"):
        return "py"
    return "native"


def read_pyspy(path, pid):
    out = collections.Counter()
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            st, _, n = line.rstrip("\n").rpartition(" ")
            p, tid, thread, fr = pid, 0, "", []
            for x in st.split(";"):
                m = re.match(r"process (\d+)[:]", x)
                if m:
                    p = int(m.group(1))
                    continue
                m = re.match(r"thread \(?(0x[0-9a-fA-F]+|\d+)\)?(?:: (.*))?$", x)
                if m and not fr:
                    tid, thread = int(m.group(1), 0), m.group(2) or ""
                    continue
                m = re.match(r"(.*) \((.*?)(?::(\d+))?\)$", x)
                fr.append((kind_of(m.group(2)), m.group(1), m.group(2), int(m.group(3) or 0)) if m
                          else ("native", x, "", 0))
            out[(p, tid, thread, tuple(fr))] += int(n)
    for (p, t, th, fr), n in out.items():
        yield {"pid": p, "tid": t, "thread": th, "n": n, "w": n, "ts": [], "frames": [list(x) for x in fr]}


def read_austin(path, pid):
    txt = path + ".txt"
    subprocess.call([MOJO, path, txt], stderr=subprocess.DEVNULL)
    with open(txt, encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith("#") or not line.strip():
                continue
            st, _, n = line.rstrip("\n").rpartition(" ")
            parts = st.split(";")
            p, tid, fr = int(parts[0][1:]), parts[1][1:], []
            t = tid.rsplit(":", 1)[-1]
            for x in parts[2:]:
                if x in (":GC:", ":INVALID:", ""):
                    fr.append(["gc" if x == ":GC:" else "native", x, "", 0])
                    continue
                a = x.rsplit(":", 1)
                b = re.match(r"(native@[0-9a-f]+|kernel|.*\.py|<.*?>|.*?):(.*)$", a[0])
                if not b:
                    fr.append(["native", x, "", 0])
                    continue
                file, fn = b.groups()
                k = "native" if file.startswith("native@") else "kernel" if file.startswith("kernel") else "py"
                fr.append([k, fn, "" if k != "py" else file, int(a[1] or 0) if a[1].isdigit() else 0])
            yield {"pid": p, "tid": int(t) if t.isdigit() else 0, "thread": "", "n": 1,
                   "w": float(n.split(",")[0] or 0), "ts": [], "frames": fr}


def read_tachyon(path, pid):
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            st, _, n = line.rstrip("\n").rpartition(" ")
            parts = st.split(";")
            tid = int(parts[0].split(":")[1]) if parts[0].startswith("tid:") else 0
            fr = []
            for x in parts[1:]:
                m = re.match(r"(.*?):(.*):(-?\d+)$", x)
                if m:
                    k = "native" if m.group(1) == "~" else "py"
                    fr.append([k, m.group(2), m.group(1), int(m.group(3))])
                else:
                    fr.append(["gc" if x == "<GC>" else "native", x, "", 0])
            yield {"pid": pid, "tid": tid, "thread": "", "n": int(n), "w": int(n), "ts": [], "frames": fr}


def read_attach(name, path, pid):
    """All records of one run; [] when the profiler left no output."""
    kids = glob.glob(path + "_*") if name.startswith("tachyon") else []     # one file more per child there
    if not os.path.exists(path) and not kids:
        return []
    if kids:
        return [r for k in kids for r in read_tachyon(k, int(k.rsplit("_", 1)[1]))] + (
            list(read_tachyon(path, pid)) if os.path.exists(path) else [])
    f = read_pyspy if name.startswith("pyspy") else read_austin if name.startswith("austin") else read_tachyon
    return list(f(path, pid))


# ------------------------------------------------------------------ system-wide OTLP agents
OTLP_KIND = {"cpython": "py", "native": "native", "kernel": "kernel", "python": "py", "abort-marker": "trunc"}


def read_sink(out):
    with open(out + "/stacks.jsonl", encoding="utf-8") as f:
        for line in f:
            d = json.loads(line)
            yield {"pid": d["pid"], "tid": d["tid"], "thread": d["thread"], "n": d["n"], "w": d["n"], "ts": d["ts"],
                   "frames": [[OTLP_KIND.get(x[0], "other"), x[1], x[2], x[3]] for x in d["frames"]]}


class System:
    """A system-wide agent together with a sink: start, ..., stop, then records by pid."""

    def __init__(self, name, rate, out, port=24317, interval="1s", extra=(), pids=(), wait=True):
        """pids: first.json is to wait for a sample of one of these (else of any process); wait: until it has attached."""
        self.out, self.name, self.port = out, name, port
        os.makedirs(out, exist_ok=True)
        for f in ("listening", "first.json", "raw.bin"):
            if os.path.exists(out + "/" + f):
                os.unlink(out + "/" + f)
        self.sink = subprocess.Popen([VENV + "/bin/python", HERE + "/sink.py", "serve", "--port", str(port), "--out", out,
                                      "--no-decode"] + (["--first-pids", ",".join(map(str, pids))] if pids else []))
        wait_file(out + "/listening")
        cmd = ["sh", "-c", "exec " + OURS.format(rate=rate, port=port, interval=interval)]
        self.t0 = time.time()
        self.log = out + "/agent.log"
        self.p = subprocess.Popen(cmd, stdout=open(self.log, "w"), stderr=subprocess.STDOUT)
        time.sleep(1.0 if wait else 0)
        if wait and self.p.poll() is not None:
            self.sink.send_signal(signal.SIGINT)
            with open(self.log, errors="replace") as f:
                raise SystemExit("%s ended at once with %s: %s" % (name, self.p.returncode, f.read()[-500:].strip()))

    def wait_first(self, secs=30):
        """Wait until first.json is there: some agents begin to sample seconds after they say that they have attached."""
        try:
            wait_file(self.out + "/first.json", secs)
        except TimeoutError:
            print("%s exported no wanted sample in %d s" % (self.name, secs), flush=True)

    def stop(self, settle=2.5):
        time.sleep(settle)
        self.p.send_signal(signal.SIGINT)
        try:
            self.p.wait(15)
        except subprocess.TimeoutExpired:
            self.p.kill()
        time.sleep(0.3)
        self.sink.send_signal(signal.SIGINT)
        self.sink.wait(20)

    def decode(self):
        subprocess.check_call([VENV + "/bin/python", HERE + "/sink.py", "decode", self.out, "--lib-dirs", LIB_DIRS,
                               "--gzip"], stdout=subprocess.DEVNULL)
        by = collections.defaultdict(list)
        for r in read_sink(self.out):
            by[r["pid"]].append(r)
        return by


def wait_file(path, secs=30):
    end = time.time() + secs
    while not os.path.exists(path):
        if time.time() > end:
            raise TimeoutError(path)
        time.sleep(0.02)
