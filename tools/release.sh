#!/bin/sh
# Makes a release of the last commit in directory $1: all that users download, each tried where nothing else is. Further
# arguments choose some of these steps:
#
#   source    the source archive. Everything else is built from it, without a network
#   library   the library for Linux, on x86-64 and AArch64, with glibc and with musl
#   crate     the crate for Rust's registry
#   python    the Python packages: wheels and source distributions
#   tool      the command-line tool for Linux
#   debian    the Debian packages
#   windows   the library for Windows
#   macos     the library for macOS, which nobody has run
#   packaging recipes for Conan, vcpkg, Homebrew and conda
#   sbom      the list of what everything is made of
#   sums      the SHA-256 sums of all files, signed with the key that SIGNING_KEY names
#
# Python's tools come from the environment in VENV. Equal commits give equal bytes, wherever, whenever and by whomever they
# are built, on machines with equal tools: tools/reproducible.sh checks that. With ONLY_BUILD=1, nothing is tried.
set -eu
[ $# -ge 1 ] || { sed -n 's/^# \{0,1\}//; 2,18p' "$0"; exit 2; }
umask 022
mkdir -p "$1"
out=$(realpath "$1")
shift
venv=$(realpath "${VENV:-.venv}")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
export out venv version LC_ALL=C.UTF-8 TZ=UTC
[ $# -gt 0 ] || set -- source library crate python tool debian windows macos packaging sbom sums
if [ "$1" = source ]; then
    echo "==> release: source"
    tools/dist.sh "$out"
    shift
fi

# The sources are unpacked once, so that steps that are run one by one find what others have built.
archive=$out/libsplit-$version-src.tar.gz
[ -e "$archive" ] || { echo "error: no $archive: make it first, with the step 'source'" >&2; exit 1; }
work=$PWD/build/from-archive
if ! (cd "$out" && sha256sum --check --status "$work/archive.sha256" 2>/dev/null); then
    rm -rf "$work"
    mkdir -p "$work"
    tar -xzf "$archive" -C "$work"
    (cd "$out" && sha256sum "$(basename "$archive")") >"$work/archive.sha256"
fi
cd "$work/libsplit-$version-src"
SOURCE_DATE_EPOCH=$(stat --format=%Y Cargo.toml) # of the commit
export SOURCE_DATE_EPOCH

# Paths of this machine are replaced in what is compiled.
for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl \
    x86_64-pc-windows-gnu x86_64-apple-darwin aarch64-apple-darwin; do
    name=$(echo "$target" | tr a-z- A-Z_)
    export "CARGO_TARGET_${name}_RUSTFLAGS=--remap-path-prefix=$PWD=libsplit-$version"
done
export CARGO_NET_OFFLINE=true

for step; do
    echo "==> release: $step"
    "tools/release/$step.sh"
done
ls -l "$out"
