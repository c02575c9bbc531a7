#!/bin/sh
# Compares libsplit as it was at commit $1 with this tree: tools/compare.sh COMMIT WORDS BUILD PYTHON [arguments of
# compare.py]. If $2 has words that libsplit_test_force() knows (a level, a row of the table of machines), this tree is
# forced to use them, and so is the commit if it supports that.
set -eu
commit=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "error: '$1' is not a commit: give one as SINCE=COMMIT" >&2; exit 2; }
words=$2
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
before_flags="" now_flags=""
if [ -n "$words" ]; then
    now_flags="--cfg libsplit_test_switch"
    if grep -q "libsplit_cpu.*\"$words\"" "$before/Cargo.toml"; then before_flags="--cfg libsplit_cpu=\"$words\""; fi
fi
library() {
    RUSTFLAGS="$3" cmake -S "$1" -B "$1/build/$2" -DCMAKE_BUILD_TYPE=Release -DLIBSPLIT_BUILD_TESTS=OFF \
        -DLIBSPLIT_BUILD_EXAMPLES=OFF -DLIBSPLIT_BUILD_BENCH=OFF >/dev/null
    RUSTFLAGS="$3" cmake --build "$1/build/$2" --target libsplit-build >/dev/null
}
name=compared$(echo "$words" | tr -c 'a-z0-9\n' -)
echo "==> build: $commit and this tree, ${words:-this CPU}"
library "$before" "$name" "$before_flags"
library . "$name" "$now_flags"
"$python" bench/compare.py --build "$build" --old "$before/build/$name/lib/libsplit.so" \
    --new "build/$name/lib/libsplit.so" ${words:+--force "$words"} --random 300 "$@"
