#!/usr/bin/env bash
# Installs what the tests need (Debian packages, the pinned Rust toolchain, bpf-linker) and runs them.
# As root the privileged tests run too; otherwise each says why it is skipped.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== %s\n' "$*"; }

step "toolchain"
command -v rustup >/dev/null || { echo "rustup is missing: install it from https://rustup.rs"; exit 1; }
toolchain=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
rustup toolchain install "$toolchain" --profile minimal -c rust-src -c rustfmt -c clippy --no-self-update
command -v python3.11 >/dev/null || { [ "$(id -u)" = 0 ] && apt-get update -q && apt-get install -y -q python3.11; } || true

step "sources: length and form"
cargo xtask file-size
cargo fmt --check
(cd exporter-ebpf && cargo fmt --check)

step "the embedded eBPF object is what its sources give"
if [ "$(id -u)" = 0 ] && ! [ -x /usr/lib/llvm-22/bin/llvm-config ]; then
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q llvm-22-dev libpolly-22-dev libzstd-dev
fi
if ! command -v bpf-linker >/dev/null; then
    LLVM_PREFIX=/usr/lib/llvm-22 cargo install bpf-linker --version 0.13.0 --locked --no-default-features --features llvm-22
fi
cargo xtask check-ebpf

step "lints"
cargo clippy --workspace --all-targets -- -D warnings

step "tests"
cargo build -p otel-profile-exporter
cargo test --workspace --no-fail-fast -- --test-threads=2

step "another kernel (6.1, in qemu): every program loads and samples"
if [ "$(id -u)" = 0 ]; then
    tests/kernels/run.sh bookworm
else
    echo "skipped: it installs qemu, which needs root"
fi
