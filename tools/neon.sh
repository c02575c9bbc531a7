#!/bin/sh
# Runs unit tests of the copies for 64-bit Arm, under qemu: NEON's bytes are tested so, not its speed.
# It needs what Debian has for that, and installs it there: a cross linker, qemu-user, and a Rust whose
# standard library for Arm is a package.
#
# Arguments: parts of the names of tests, instead of the short ones.
set -eu
target=aarch64-unknown-linux-gnu
linker=aarch64-linux-gnu-gcc
sysroot=$(/usr/bin/rustc --print sysroot 2>/dev/null || true)

if ! { command -v qemu-aarch64 && command -v $linker; } >/dev/null ||
    [ ! -d "$sysroot/lib/rustlib/$target" ]; then
    dpkg --add-architecture arm64
    apt-get update
    apt-get install -y --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
        qemu-user rustc-web libstd-rust-web-dev:arm64
fi
if [ $# -eq 0 ]; then
    set -- rules cpu:: more_than_a_stage more_columns every_length
fi
export RUSTC=/usr/bin/rustc CARGO_TARGET_DIR=target/neon
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$linker
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
cargo test --locked --lib --target $target -- "$@"
