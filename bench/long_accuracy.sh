#!/usr/bin/env bash
# The accuracy of stacks, lines and shares, quiet and with twenty busy processes: docs/results/accuracy.txt.
# About 20 minutes; nothing else should run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
bench/setup.sh
out=$(mktemp -d)
workloads=split,deep,threads,gen,churn,coroutines,unicode,gc,subproc,imports
pythons=3.11,3.12,3.13,sys3.11
python3 bench/accuracy.py --profilers ours --pythons $pythons --workloads $workloads --seconds 14 --out "$out/quiet.jsonl"
python3 bench/accuracy.py --profilers ours --pythons $pythons --workloads split,threads,gen,deep,unicode --seconds 14 \
    --together --out "$out/busy.jsonl"
python3 bench/judge.py "$out/quiet.jsonl" "$out/busy.jsonl" --out docs/results/accuracy.txt
