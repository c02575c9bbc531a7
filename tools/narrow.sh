#!/bin/sh
# Runs the C tests that concern a size_t of 32 bits, in build directory $1. An x86-64 CPU runs i686 programs itself, and
# linked statically they need no libraries. Overflow is checked in this build. tools/cross.sh runs more tests for i686.
set -eu
build=$1/narrow
target=i686-unknown-linux-gnu

skip() {
    echo "skipped: $*"
    exit 77
}
[ "$(uname -sm)" = "Linux x86_64" ] || skip "only x86-64 Linux runs i686 programs"
command -v i686-linux-gnu-gcc >/dev/null || skip "no i686-linux-gnu-gcc (Debian: g++-i686-linux-gnu)"
rustup target add $target 2>/dev/null || skip "no Rust for i686 from rustup"
mkdir -p "$build"
echo 'int main(void) { return 0; }' | i686-linux-gnu-gcc -static -o "$build/nothing" -x c -
"$build/nothing" || skip "this kernel runs no i686 programs"

cargo rustc --quiet --lib --locked --release --crate-type staticlib --no-default-features --features capi \
    --target $target --target-dir "$build/cargo" --config profile.release.overflow-checks=true
failed=0
for test in narrow bad_input overlap constants strings sub_byte view infer copy; do
    i686-linux-gnu-gcc -std=c11 -O2 -Wall -Wextra -Wpedantic -Wundef -Werror -Iinclude -static -o "$build/$test" \
        "c-tests/$test.c" "$build/cargo/$target/release/liblibsplit.a" -lm -pthread
    echo "==> i686: $test"
    timeout 60 "$build/$test" || failed=1
done
exit $failed
