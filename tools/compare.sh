#!/bin/sh
# Builds libsplit as it was at a commit, $1, and as it is, both by the rules of a CPU, $2 (as libsplit_cpu in
# Cargo.toml; empty: this one), and compares them: tools/compare.sh COMMIT CPU BUILD PYTHON [arguments of compare.py]
set -eu
commit=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "error: no commit '$1': SINCE=COMMIT" >&2; exit 2; }
cpu=$2
build=$3
python=$4
shift 4
before=build/compare/$commit
if [ ! -e "$before/Cargo.toml" ]; then
    rm -rf "$before.new"
    mkdir -p "$before.new"
    git archive "$commit" | tar -x -C "$before.new"
    mv "$before.new" "$before"
fi
if [ -n "$cpu" ]; then
    for tree in "$before" .; do
        grep -q "libsplit_cpu.*\"$cpu\"" "$tree/Cargo.toml" ||
            { echo "error: $tree/Cargo.toml knows no libsplit_cpu \"$cpu\"" >&2; exit 2; }
    done
    export RUSTFLAGS="--cfg libsplit_cpu=\"$cpu\""
fi
library() {
    cmake -S "$1" -B "$1/build/cpu-$cpu" -DCMAKE_BUILD_TYPE=Release -DLIBSPLIT_BUILD_TESTS=OFF \
        -DLIBSPLIT_BUILD_EXAMPLES=OFF -DLIBSPLIT_BUILD_BENCH=OFF >/dev/null
    cmake --build "$1/build/cpu-$cpu" --target libsplit-build >/dev/null
}
echo "==> build: $commit and this tree, CPU ${cpu:-here}"
library "$before"
library .
"$python" bench/compare.py --build "$build" --old "$before/build/cpu-$cpu/lib/libsplit.so" \
    --new "build/cpu-$cpu/lib/libsplit.so" --random 300 "$@"
