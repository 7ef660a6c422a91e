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
# Austin's binaries want a newer libc than Debian 12's: they are started by the loader of a newer suite.
read -r _ root _ < <(tests/pythons/fetch.sh 3.13-trixie)
for tool in austin austinp; do
    printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$root/lib64/ld-linux-x86-64.so.2" \
        "$root/usr/lib/x86_64-linux-gnu" "$PWD/$venv/bin/$tool" >bench/.rivals/$tool
    chmod +x bench/.rivals/$tool
done
cargo build --release -p otel-profile-exporter
