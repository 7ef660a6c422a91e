#!/usr/bin/env bash
# Twenty mixed processes for five minutes into the real Collector; writes docs/results/collector.txt.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build -p otel-profile-exporter
(cd otel-collector && go build -o ../target/otelcol .)
python3 tests/collector/twenty.py target/debug/otel-profile-exporter target/otelcol --result docs/results/collector.txt
