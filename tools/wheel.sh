#!/bin/sh
# Builds the wheel of the Python package in directory $2, with maturin's arguments from the third on, and
# installs it in the Python environment in directory $1.
#
# A wheel for release needs --zig: the linker of the PyPI package ziglang can target glibc 2.17, the oldest
# version that Rust supports.
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
