"""A master that warms up and forks four workers, each burning in a function of its own; one is killed and replaced.

--mode fork     os.fork in the main thread; worker 1 is killed at half its time, and worker 4 takes its place
--mode thread   the same, forked from a thread that is not the main one
--mode pool     multiprocessing.Pool with the fork start method; its four workers are not killed

Each worker burns SECONDS of its thread's CPU time. `worker N PID` is printed for each before it works.
Truth: `functions` has master_warm only; `workers` lists {worker, pid, tid, killed, functions}. A killed worker's seconds
are those that it had noted down before, so they are a lower bound.
"""
import json
import mmap
import multiprocessing
import os
import signal
import struct
import threading
import warnings

import _case
from _case import cpu

SECONDS = 2.0
WORKERS = 4
KILLED = 1
T = _case.Truth(__file__)
NOTES = mmap.mmap(-1, 8 * 16)           # shared with the workers: CPU seconds so far, a double for each


def master_warm(seconds):
    T.saw("master_warm", (3, 4))
    x, t0 = 0, cpu()
    end = t0 + seconds
    while cpu() < end:
        x = (x * 3 + 1) & 0xFFFF
    T.spent("master_warm", cpu() - t0)


def worker_0_burn(t, end):
    t.saw("worker_0_burn", (2, 3))
    x = 0
    while cpu() < end:
        x = (x * 3 + 1) & 0xFFFF


def worker_1_burn(t, end):
    t.saw("worker_1_burn", (2, 3))
    x = 0
    while cpu() < end:
        x = (x * 3 + 1) & 0xFFFF


def worker_2_burn(t, end):
    t.saw("worker_2_burn", (2, 3))
    x = 0
    while cpu() < end:
        x = (x * 3 + 1) & 0xFFFF


def worker_3_burn(t, end):
    t.saw("worker_3_burn", (2, 3))
    x = 0
    while cpu() < end:
        x = (x * 3 + 1) & 0xFFFF


def worker_4_burn(t, end):
    t.saw("worker_4_burn", (2, 3))
    x = 0
    while cpu() < end:
        x = (x * 3 + 1) & 0xFFFF


BURN = [worker_0_burn, worker_1_burn, worker_2_burn, worker_3_burn, worker_4_burn]


def work(number, seconds, half=None):
    """Burn in slices and note the time after each; `half` is called when half of it is done."""
    print("worker %d %d" % (number, os.getpid()), flush=True)
    t = _case.Truth(__file__)
    t0 = cpu()
    for i in range(20):
        BURN[number](t, t0 + seconds * (i + 1) / 20)
        struct.pack_into("d", NOTES, 8 * number, cpu() - t0)
        if i == 0 and half:
            half(t)
        if i == 9 and half:
            half(None)
    t.spent(BURN[number].__name__, cpu() - t0)
    return {"worker": number, "pid": t.d["pid"], "tid": t.d["tid"], "killed": False, "functions": t.d["functions"]}


def fork(number, seconds):
    """A forked worker: (pid, pipe). It sends a line after its first slice, one at half its time and one at its end."""
    r, w = os.pipe()
    pid = os.fork()
    if pid:
        os.close(w)
        return pid, os.fdopen(r, encoding="utf-8")
    try:
        os.close(r)
        out = os.fdopen(w, "w", encoding="utf-8")

        def half(t):
            out.write(json.dumps(t.d if t else {}) + "\n")
            out.flush()

        out.write(json.dumps(work(number, seconds, half)) + "\n")
        out.close()
        os._exit(0)
    finally:
        os._exit(1)


def prefork(seconds, workers):
    running = [(n,) + fork(n, seconds) for n in range(WORKERS)]
    number, pid, pipe = running.pop(KILLED)
    first = json.loads(pipe.readline())
    pipe.readline()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pipe.close()
    for f in first["functions"].values():
        f["seconds"] = struct.unpack_from("d", NOTES, 8 * number)[0]
    workers.append({"worker": number, "pid": pid, "tid": first["tid"], "killed": True, "functions": first["functions"]})
    running.append((WORKERS,) + fork(WORKERS, seconds))
    for _, pid, pipe in running:
        workers.append(json.loads(pipe.readlines()[-1]))
        pipe.close()
        os.waitpid(pid, 0)


def pool_work(task):
    number, seconds, barrier_fd = task
    os.read(barrier_fd, 1)
    return work(number, seconds)


def pool(seconds, workers):
    """One task a worker: each waits for a byte that is written when all four were handed out."""
    r, w = os.pipe()
    with multiprocessing.get_context("fork").Pool(WORKERS) as p:
        result = p.map_async(pool_work, [(n, seconds, r) for n in range(WORKERS)], chunksize=1)
        os.write(w, b"x" * WORKERS)
        workers.extend(result.get())
    os.close(r)
    os.close(w)


def main():
    p = _case.parser(__doc__)
    p.add_argument("seconds", nargs="?", type=float, default=SECONDS, metavar="SECONDS", help="of each (default 2)")
    p.add_argument("--mode", choices=("fork", "thread", "pool"), default="fork")
    args = p.parse_args()
    warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning)   # the case itself
    _case.ready(args)
    master_warm(0.5)
    workers = []
    if args.mode == "fork":
        prefork(args.seconds, workers)
    elif args.mode == "pool":
        pool(args.seconds, workers)
    else:
        t = threading.Thread(target=prefork, args=(args.seconds, workers), name="forker")
        t.start()
        t.join()
    T.write(args, mode=args.mode, workers=sorted(workers, key=lambda x: x["worker"]))


if __name__ == "__main__":
    main()
