#!/usr/bin/env bash
# What the exporter costs, beside py-spy and austin in the same run, and how soon it names: docs/results/overhead.txt.
# About 35 minutes; nothing else should run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
bench/setup.sh
out=$(mktemp -d)
python3 bench/overhead.py first --profilers ours --rounds 7 --out "$out/first"
python3 bench/naming.py --out "$out/naming"
TOGGLE_ON='kill -USR2 $AGENT_PID' TOGGLE_OFF='kill -USR1 $AGENT_PID' \
    python3 bench/overhead.py ab --profilers ours --rates 99 --python 3.12 --block 5 --guard 0.5 --out "$out/ab"
python3 bench/overhead.py self --profilers ours,pyspy,austin --rates 19,99 --procs 1,20 --python 3.12 --out "$out/self"
{
    echo "commit $(git rev-parse --short HEAD)  $(date +%F)  kernel $(uname -r)  $(nproc) processors"
    cat "$out"/first "$out"/naming "$out"/ab "$out"/self
} >docs/results/overhead.txt
cat docs/results/overhead.txt
