#!/usr/bin/env bash
# Loads every program and samples a static Python on Debian's kernels, in qemu.
# run.sh [bullseye|bookworm|trixie|sid]…   writes docs/results/kernels.txt when all four are run
set -euo pipefail
cd "$(dirname "$0")/../.."
cache=.cache/kernels
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(bullseye bookworm trixie sid)

command -v qemu-system-x86_64 >/dev/null && command -v busybox >/dev/null && command -v musl-gcc >/dev/null || {
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q qemu-system-x86 busybox-static musl-tools
}
python=/usr/bin/python3.11 # Debian's: one static executable
[ -x "$python" ] || { echo "$python is missing: apt-get install python3.11"; exit 1; }
rustup target add x86_64-unknown-linux-musl
cargo build --profile fast --target x86_64-unknown-linux-musl -p otel-profile-exporter
exporter=target/x86_64-unknown-linux-musl/fast/otel-profile-exporter

# The mirror that this machine uses, whatever it is.
mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' \
    $(find /etc/apt -name "*.list" -o -name "*.sources") | head -n 1)

# Downloads a suite's cloud kernel in apt folders of its own; prints the image's path.
kernel() {
    local dir=$PWD/$cache/$1
    mkdir -p "$dir"/{lists/partial,cache,root}
    if ! ls "$dir"/root/boot/vmlinuz* "$dir"/root/usr/lib/modules/*/vmlinuz >/dev/null 2>&1; then
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" >"$dir/sources.list"
        local apt=(-o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$dir/lists"
            -o "Dir::Cache=$dir/cache" -o Acquire::Check-Valid-Until=false)
        apt-get "${apt[@]}" update -q >&2
        local name
        name=$(apt-cache "${apt[@]}" search --names-only '^linux-(image|binary)-[0-9].*-cloud-amd64$' | cut -d' ' -f1 | sort -V | tail -n 1)
        (cd "$dir" && apt-get "${apt[@]}" download -q "$name" >&2 && dpkg -x "$name"_*.deb root)
        # Newer images only depend on the package that holds the file.
        if ! ls "$dir"/root/boot/vmlinuz* >/dev/null 2>&1; then
            name=${name/linux-image/linux-binary}
            (cd "$dir" && apt-get "${apt[@]}" download -q "$name" >&2 && dpkg -x "$name"_*.deb root)
        fi
    fi
    find "$dir/root" -name 'vmlinuz*' | head -n 1
}

failed=0
report=$(mktemp)
for suite in "${suites[@]}"; do
    image=$(kernel "$suite") || image=
    [ -n "$image" ] || { echo "$suite: not run: not served" | tee -a "$report"; continue; }
    out=$(python3 tests/kernels/boot.py --kernel "$image" --busybox /bin/busybox --file "$exporter:/exporter" \
        --file tests/kernels/load.py:/load.py --python "$python" --script tests/kernels/guest.sh --timeout 240) || true
    version=$(sed -n 's/.*@@BEGIN@@ \([^ ]*\).*/\1/p' <<<"$out")
    result=$(grep -o 'RESULT.*' <<<"$out" || echo "RESULT none")
    echo "$version $result" | tee -a "$report"
    # Every sample of the known leaf must have the whole stack, and there must be many.
    read -r leaf right < <(sed -n 's/.*of_leaf=\([0-9]*\) right=\([0-9]*\).*/\1 \2/p' <<<"$result") || true
    if [ "${leaf:-0}" -lt 100 ] || [ $((1000 * ${right:-0})) -lt $((995 * ${leaf:-0})) ]; then
        echo "$out"
        failed=1
    fi
done
if [ ${#suites[@]} -eq 4 ]; then
    { echo "commit $(git rev-parse --short HEAD)"; cat "$report"; } >docs/results/kernels.txt
fi
exit $failed
