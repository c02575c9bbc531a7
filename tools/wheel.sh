#!/bin/sh
# Builds the Python package into directory $2, with the arguments of maturin that follow, and puts it into
# the Python environment in directory $1.
#
# The wheel that is delivered needs --zig: the linker of the PyPI package ziglang knows glibc 2.17, the
# oldest that Rust works with.
set -eu
venv=$1
out=$2
shift 2
[ $# -gt 0 ] || set -- --compatibility linux

rm -rf "$out"
CARGO_TARGET_DIR="$PWD/target/python" "$venv/bin/python" -m maturin build --quiet --locked --release \
    "$@" --manifest-path python/Cargo.toml --out "$out"
ls "$out"/*.whl
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall "$out"/*.whl
