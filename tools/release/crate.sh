#!/bin/sh
# The crate, which cargo builds from its own archive. Then the README's first program in Rust runs in a new package that
# depends on the crate, and the API is documented with the features that docs.rs is told to use.
set -eu
. tools/release/common.sh
name=libsplit-$version
cargo package --quiet --locked --allow-dirty ${ONLY_BUILD:+--no-verify} --target-dir build/crate
cp "build/crate/package/$name.crate" "$out"
[ -z "${ONLY_BUILD:-}" ] || exit 0

tar -xzf "$out/$name.crate" -C "$fresh"
mkdir -p "$fresh/program/src" "$fresh/.cargo"
sed "s|^directory = .*|directory = \"$PWD/vendor\"|" .cargo/config.toml >"$fresh/.cargo/config.toml"
cat >"$fresh/program/Cargo.toml" <<PACKAGE
[package]
name = "program"
version = "0.0.0"
edition = "2021"
[dependencies]
libsplit = { path = "../$name" }
PACKAGE
awk '/^```rust/ { copies = 1; next } /^```/ { copies = 0 } copies' README.md >"$fresh/program/src/main.rs"
(cd "$fresh/program" && cargo generate-lockfile --quiet --offline && cargo build --quiet --locked --target-dir "$fresh/target")
expect 'Some([7.0])
[1.0, 2.0, 3.0]' "$fresh/target/debug/program"

(cd "$fresh/$name" && RUSTDOCFLAGS="-D warnings" cargo doc --quiet --locked --offline --no-deps --lib \
    --features ndarray,rayon --target-dir "$fresh/target")
[ -e "$fresh/target/doc/libsplit/struct.Split.html" ]
