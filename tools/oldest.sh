#!/bin/sh
# Builds the library, and runs some of its tests, with the oldest Rust that Cargo.toml allows. The exit code
# is 77 if rustup is missing or cannot install it.
set -eu
rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

rustup run "$rust" cargo --version 2>/dev/null ||
    rustup toolchain install "$rust" --profile minimal || {
    echo "skipped: no Rust $rust, and rustup cannot install it"
    exit 77
}
export CARGO_TARGET_DIR=build/oldest
rustup run "$rust" cargo check --locked --lib --features ndarray,rayon
rustup run "$rust" cargo rustc --locked --lib --release --crate-type staticlib --no-default-features \
    --features capi
rustup run "$rust" cargo test --locked --test conformance --test rust_api
