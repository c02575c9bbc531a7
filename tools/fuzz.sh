#!/bin/sh
# Builds the fuzz targets of fuzz/ and runs each for $1 seconds, or only the one named $2. What they
# find is in build/fuzz/findings; what is new in their corpora, in build/fuzz/corpus.
#
# This is what cargo-fuzz does, without cargo-fuzz: libFuzzer's counters and AddressSanitizer by
# rustc's own flags, which the stable compiler takes under RUSTC_BOOTSTRAP.
set -eu
seconds=$1
targets=${2:-split sub_byte onnxruntime headers}
triple=$(rustc -vV | sed -n 's/^host: //p')
out=build/fuzz

RUSTC_BOOTSTRAP=1 \
RUSTFLAGS="-Zsanitizer=address -Ccodegen-units=1 --cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares" \
    cargo build --release --locked --bins --manifest-path fuzz/Cargo.toml \
        --target "$triple" --target-dir "$out"

for target in $targets; do
    mkdir -p "$out/corpus/$target" "$out/findings/$target"
    echo "==> fuzz: $target, $seconds seconds"
    # No leak check: it needs ptrace, which containers may refuse.
    ASAN_OPTIONS=detect_leaks=0 "$out/$triple/release/$target" -max_total_time="$seconds" \
        -artifact_prefix="$out/findings/$target/" -timeout=60 -rss_limit_mb=4096 -max_len=400 \
        -print_final_stats=1 "$out/corpus/$target" "fuzz/corpus/$target"
done
