#!/bin/sh
# Builds the library for other CPUs, $@ (aarch64, s390x), with Debian's newest Rust, and runs the C
# tests under qemu, and AArch64's own loops by the engine's tests. Only on Debian, as root where packages
# are missing; the compiler is unpacked in build/cross, beside the machine's own. Debian has no libraries
# of this Rust for every CPU, but the source of core, which is all that libsplit needs: cargo builds it too.
set -eu
build=$PWD/build/cross
rust=$build/rust

fail() {
    echo "error: $*" >&2
    exit 1
}
install() {
    apt-get -qq install -y --no-install-recommends "$@" >/dev/null ||
        fail "apt-get could not install $*"
}

if [ ! -x "$rust/rustc" ] || [ ! -d "$rust/usr/lib/rustlib/aarch64-unknown-linux-gnu" ]; then
    echo "==> cross: the compiler, from Debian"
    command -v apt-get >/dev/null || fail "the compilers for other CPUs come from Debian's packages"
    apt-get -qq update
    version=$(apt-cache madison rustc-web | awk '{ print $3 }' | sort -V | tail -n 1)
    number=$(echo "$version" | cut -d . -f 1-2)
    llvm=$(apt-cache depends "libstd-rust-web-$number" | sed -n 's/.*Depends: \(libllvm.*\)/\1/p')
    install qemu-user "$llvm" g++-aarch64-linux-gnu g++-s390x-linux-gnu
    rm -rf "$rust" "$build/debs"
    mkdir -p "$build/debs"
    (cd "$build/debs" && apt-get -qq download "rustc-web=$version" "rust-web-src=$version" \
        "libstd-rust-web-$number=$version" "libstd-rust-web-dev=$version" 2>/dev/null) ||
        fail "apt-get could not download Rust"
    # Rust's test harness needs all of the standard library; the machine's own lists stay as they are.
    mkdir -p "$build/debs/lists/partial"
    foreign() { apt-get -qq -o APT::Architectures::=arm64 -o Dir::State::Lists="$build/debs/lists" "$@"; }
    (cd "$build/debs" && foreign update && foreign download "libstd-rust-web-dev:arm64=$version" 2>/dev/null) ||
        fail "apt-get could not download AArch64's standard library"
    for package in "$build/debs"/*.deb; do
        dpkg -x "$package" "$rust"
    done
    rm -r "$build/debs"
    # shellcheck disable=SC2016 # for the wrapper to expand
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$rust/usr/lib/$(uname -m)-linux-gnu" \
        "$rust/usr/bin/rustc" >"$rust/rustc"
    chmod +x "$rust/rustc"
fi
export RUSTC="$rust/rustc" RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=core
echo "==> cross: $("$RUSTC" --version)"

# No threads: under qemu, AArch64's hang now and then before they begin.
tests='^(copy|view|infer|bad_input|overlap|strides|strings|sub_byte|constants|cpp_split|cpp_no_exceptions|dlpack|guard_pages)[.]shared$'
if command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
# Runs the tests of CPU $1 in directory $2; $RUSTFLAGS say which loops.
try() {
    cpu=$1
    echo "==> cross: $2"
    cmake -S . -B "$build/$2" -DCMAKE_BUILD_TYPE=Release -DLIBSPLIT_BUILD_EXAMPLES=OFF \
        -DLIBSPLIT_BUILD_BENCH=OFF -DLIBSPLIT_CARGO_TARGET="$cpu-unknown-linux-gnu" \
        -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$cpu" \
        -DCMAKE_C_COMPILER="$cpu-linux-gnu-gcc" -DCMAKE_CXX_COMPILER="$cpu-linux-gnu-g++" \
        -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-$cpu;-L;/usr/$cpu-linux-gnu" >/dev/null
    cmake --build "$build/$2" --parallel "$(getconf _NPROCESSORS_ONLN)"
    ctest --test-dir "$build/$2" --output-on-failure \
        --tests-regex "$tests|^(old_program|abi$|freestanding)"
}

for cpu in "$@"; do
    try "$cpu" "$cpu"
    [ "$cpu" = aarch64 ] || continue
    # Its own loops, past the caches too.
    RUSTFLAGS="--cfg libsplit_low_thresholds" try "$cpu" "$cpu-low"
    # Columns take as long as all others: the C tests have them.
    echo "==> cross: $cpu, the engine's own tests"
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
        CARGO_PROFILE_TEST_OPT_LEVEL=3 CARGO_TARGET_DIR="$build/target" \
        env -u CARGO_UNSTABLE_BUILD_STD cargo test --locked --lib --target "$cpu-unknown-linux-gnu" \
        copy:: -- --test-threads=1 --skip columns::
done
