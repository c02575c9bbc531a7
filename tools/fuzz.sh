#!/bin/sh
# Builds the fuzz targets of fuzz/ and runs each for $1 seconds, or only the one named $2. Findings go to
# build/fuzz/findings, new inputs to build/fuzz/corpus.
#
# With 'replay' instead of a number of seconds, it runs every seed and 20,000 inputs made from them, the same
# ones each time, without AddressSanitizer, in well under a minute. 'make test' does that.
#
# This does what cargo-fuzz does, without cargo-fuzz: libFuzzer's counters and AddressSanitizer are turned on
# with rustc's flags, which the stable compiler accepts if RUSTC_BOOTSTRAP is set.
set -eu
seconds=$1
targets=${2:-split sub_byte onnxruntime headers}
triple=$(rustc -vV | sed -n 's/^host: //p')
out=build/fuzz
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
# By itself, libFuzzer ends with 77 after a finding, which here means that a test was skipped.
limit="-error_exitcode=1 -timeout_exitcode=1 -oom_exitcode=1 -timeout=60 -rss_limit_mb=4096 -max_len=400"

build() {
    # shellcheck disable=SC2046 # several words
    RUSTFLAGS="$flags" cargo build --release --locked --manifest-path fuzz/Cargo.toml \
        $(printf -- '--bin %s ' $targets) --target "$triple" --target-dir "$1"
}

if [ "$seconds" = replay ]; then
    # Few inputs are run, so compiling takes longer.
    export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=false
    build "$out/replay"
    for target in $targets; do
        echo "==> fuzz: $target, its seeds and 20,000 inputs made from them"
        # libFuzzer adds what it finds to the first directory, which must not be the one under version control.
        rm -rf "$out/replay/corpus" && mkdir -p "$out/replay/corpus" "$out/findings/$target"
        # shellcheck disable=SC2086 # several words
        "$out/replay/$triple/release/$target" $limit -runs=20000 -seed=1 \
            -artifact_prefix="$out/findings/$target/" "$out/replay/corpus" "fuzz/corpus/$target"
    done
    exit
fi

export RUSTC_BOOTSTRAP=1
flags="-Zsanitizer=address $flags"
build "$out"
for target in $targets; do
    mkdir -p "$out/corpus/$target" "$out/findings/$target"
    echo "==> fuzz: $target, $seconds seconds"
    # No leak check: it needs ptrace, which containers may refuse.
    # shellcheck disable=SC2086 # several words
    ASAN_OPTIONS=detect_leaks=0 "$out/$triple/release/$target" $limit -max_total_time="$seconds" \
        -artifact_prefix="$out/findings/$target/" -print_final_stats=1 "$out/corpus/$target" \
        "fuzz/corpus/$target"
done
