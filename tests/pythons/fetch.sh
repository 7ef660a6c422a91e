#!/usr/bin/env bash
# Brings interpreters of other Debian suites, each into a root of its own under .cache/pythons/NAME, with all the
# libraries that it needs (its libc too): they run by chroot, and nothing of this system is touched.
# fetch.sh [NAME]…   without names, every one; prints "NAME ROOT PATH" for each that is there
set -euo pipefail
cd "$(dirname "$0")/../.."
# NAME SUITE PACKAGE PATH
known="
3.13-trixie trixie python3.13 /usr/bin/python3.13
3.14-sid sid python3.14 /usr/bin/python3.14
3.15-sid sid python3.15 /usr/bin/python3.15
"
mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' \
    $(find /etc/apt -name "*.list" -o -name "*.sources") | head -n 1)

fetch() {
    local name=$1 suite=$2 package=$3 path=$4
    local dir=$PWD/.cache/pythons/$name
    if ! [ -e "$dir/done" ]; then
        rm -rf "$dir"
        mkdir -p "$dir"/{lists/partial,cache/archives/partial,root}
        touch "$dir/status"
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$dir/sources.list"
        local apt=(-q -o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$dir/lists"
            -o "Dir::State::status=$dir/status" -o "Dir::Cache=$dir/cache" -o Acquire::Check-Valid-Until=false
            -o APT::Sandbox::User=root -o Debug::NoLocking=1)
        apt-get "${apt[@]}" update >&2
        apt-get "${apt[@]}" install -y --download-only --no-install-recommends "$package" >&2
        # Merged /usr, as these suites want it.
        mkdir -p "$dir"/root/usr/{bin,lib,lib64,sbin} "$dir"/root/{dev,proc,tmp}
        for folder in bin lib lib64 sbin; do ln -s "usr/$folder" "$dir/root/$folder"; done
        for deb in "$dir"/cache/archives/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir/root" --keep-directory-symlink; done
        touch "$dir/root/dev/null"
        rm -rf "$dir/cache" "$dir/lists"
        chroot "$dir/root" "$path" -c 'import sys, json, ctypes; print(sys.version)' >&2
        touch "$dir/done"
    fi
    echo "$name $dir/root $path"
}

while read -r name suite package path; do
    [ -n "$name" ] || continue
    if [ $# -eq 0 ] || [[ " $* " == *" $name "* ]]; then
        (fetch "$name" "$suite" "$package" "$path") || echo "$name: not served" >&2
    fi
done <<<"$known"
