#!/bin/sh
# Installs libsplit by 'cargo cinstall' below build/cinstall, and builds programs with it there.
# cargo-c itself is built first where it is missing, which takes long.
set -eu
version=0.10.24
prefix=$PWD/build/cinstall/installed

if ! cargo cinstall --version 2>/dev/null | grep -q "^cargo-c $version "; then
    # The newest of these versions; what follows the + is cargo's own.
    cargo install --locked --root build/cargo-c --version "$version" cargo-c
    export PATH="$PWD/build/cargo-c/bin:$PATH"
fi
echo "==> cinstall: $(cargo cinstall --version)"
rm -rf "$prefix"
cargo cinstall --locked --release --target-dir build/cinstall/target --prefix "$prefix" --libdir lib
