"""A process that has just started: which function it is in, and how much CPU time it has used, by the wall clock.

    newborn.py CPU_MS     burns until it has used so much; prints {"pid", "clock": [[epoch ns, CPU ns of the process], ...]}

The first entry of the clock is its first line; what came before it was the interpreter's own start.
"""
import json
import os
import sys
import time


def burn(clock, until):
    x, cpu = 0, 0
    while cpu < until:
        for i in range(2000):
            x = (x * 3 + i) & 0xFFFF
        cpu = time.process_time_ns()
        clock.append((time.time_ns(), cpu))


def main():
    clock = [(time.time_ns(), time.process_time_ns())]
    burn(clock, int(sys.argv[1]) * 10 ** 6)
    print(json.dumps({"pid": os.getpid(), "clock": clock}))


if __name__ == "__main__":
    main()
