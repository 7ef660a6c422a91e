#!/usr/bin/env bash
# Sets up what the benchmarks need: a venv with the sink's libraries and the rivals, and the exporter's release build.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=bench/.rivals/venv
if ! [ -x $venv/bin/austin ]; then
    python3 -m venv $venv
    $venv/bin/pip install -q grpcio "opentelemetry-proto>=1.45" py-spy austin-dist pyinstrument
    $venv/bin/pip install -q --no-deps austin-python # it asks for an older protobuf than it needs
fi
cargo build --release -p otel-profile-exporter
