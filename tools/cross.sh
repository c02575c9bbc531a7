#!/bin/sh
# Builds the library for other CPUs, $@ (aarch64, s390x, i686), and runs the C tests under qemu; for AArch64, also the
# engine's unit tests. Rust's libraries for these CPUs come from rustup; if it has none, Debian's newest Rust is
# unpacked in build/cross, with the source of core, which is all that libsplit needs. Missing compilers and qemu are
# installed from Debian, as root; if that fails, the exit code is 77.
set -eu
build=$PWD/build/cross
rust=$build/rust
jobs=$(getconf _NPROCESSORS_ONLN)

skip() {
    echo "skipped: $*"
    exit 77
}
install() {
    apt-get -qq install -y --no-install-recommends "$@" >/dev/null || skip "apt-get could not install $*"
}

missing=
command -v qemu-aarch64 >/dev/null || missing=qemu-user
for cpu in "$@"; do
    command -v "$cpu-linux-gnu-g++" >/dev/null || missing="$missing g++-$cpu-linux-gnu"
done
if [ "$missing" ]; then
    command -v apt-get >/dev/null || skip "no qemu-user or no g++ for $*"
    apt-get -qq update
    # shellcheck disable=SC2086 # several words
    install $missing
fi

# Debian's Rust, and its standard library for AArch64, all of which Rust's test harness needs.
unpack_debian_rust() {
    echo "==> cross: the compiler, from Debian"
    command -v apt-get >/dev/null || skip "no Rust for other CPUs: neither rustup nor Debian has it"
    apt-get -qq update
    version=$(apt-cache madison rustc-web | awk '{ print $3 }' | sort -V | tail -n 1)
    number=$(echo "$version" | cut -d . -f 1-2)
    install "$(apt-cache depends "libstd-rust-web-$number" | sed -n 's/.*Depends: \(libllvm.*\)/\1/p')"
    rm -rf "$rust" "$build/debs"
    mkdir -p "$build/debs/lists/partial"
    (cd "$build/debs" && apt-get -qq download "rustc-web=$version" "rust-web-src=$version" \
        "libstd-rust-web-$number=$version" "libstd-rust-web-dev=$version" 2>/dev/null) ||
        skip "apt-get could not download Rust"
    # The machine's own package lists are not changed.
    foreign() { apt-get -qq -o APT::Architectures::=arm64 -o Dir::State::Lists="$build/debs/lists" "$@"; }
    (cd "$build/debs" && foreign update && foreign download "libstd-rust-web-dev:arm64=$version" 2>/dev/null) ||
        skip "apt-get could not download AArch64's standard library"
    for package in "$build/debs"/*.deb; do
        dpkg -x "$package" "$rust"
    done
    rm -r "$build/debs"
    # shellcheck disable=SC2016 # for the wrapper to expand
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$rust/usr/lib/$(uname -m)-linux-gnu" \
        "$rust/usr/bin/rustc" >"$rust/rustc"
    chmod +x "$rust/rustc"
}
for cpu in "$@"; do
    rustup target add "$cpu-unknown-linux-gnu" 2>/dev/null && continue
    [ -x "$rust/rustc" ] || unpack_debian_rust
    export RUSTC="$rust/rustc" RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=core
done
echo "==> cross: $("${RUSTC:-rustc}" --version)"

# No tests with threads: under qemu, those of AArch64 sometimes hang before they start.
tests='^(copy|view|infer|bad_input|overlap|strides|strings|sub_byte|constants|narrow|cpp_split|cpp_no_exceptions|dlpack|guard_pages)[.]shared$'
if command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
# Some programs need addresses or counts of more than 32 bits, and one takes half an hour on i686.
tests_of_32_bits='^(bad_input|overlap|strides|strings|constants|narrow|guard_pages|dlpack)[.]shared$'
# Runs the tests for CPU $1 in directory $2; $RUSTFLAGS selects the loops.
try() {
    cpu=$1
    emulator=qemu-$cpu
    if [ "$cpu" = i686 ]; then
        emulator=qemu-i386
        tests=$tests_of_32_bits
    fi
    target=$(echo "$tests" | tr -d '^()$[]' | sed 's/[.]shared//; s/[^|]*/&.shared/g; s/|/ /g')
    target="$target old_program.0.1.0"
    # Test builds have one more function, which calls strlen.
    others=old_program
    [ "${RUSTFLAGS-}" ] || others="$others|abi$"
    if [ "$cpu" = aarch64 ] && [ -z "${RUSTFLAGS-}" ]; then
        target="$target freestanding"
        others="$others|freestanding"
    fi
    echo "==> cross: $2"
    cmake -S . -B "$build/$2" -DCMAKE_BUILD_TYPE=Release -DLIBSPLIT_BUILD_EXAMPLES=OFF \
        -DLIBSPLIT_BUILD_BENCH=OFF \
        -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$cpu" \
        -DCMAKE_C_COMPILER="$cpu-linux-gnu-gcc" -DCMAKE_CXX_COMPILER="$cpu-linux-gnu-g++" \
        -DCMAKE_CROSSCOMPILING_EMULATOR="$emulator;-L;/usr/$cpu-linux-gnu" >/dev/null
    # shellcheck disable=SC2086 # several words
    cmake --build "$build/$2" --parallel "$jobs" --target $target
    ctest --test-dir "$build/$2" --output-on-failure --parallel "$jobs" \
        --tests-regex "$tests|^($others)"
}

for cpu in "$@"; do
    try "$cpu" "$cpu"
    [ "$cpu" = aarch64 ] || continue
    # Its own loops again, with stores that bypass the caches.
    RUSTFLAGS="--cfg libsplit_test_switch" LIBSPLIT_TEST_FORCE=low try "$cpu" "$cpu-low"
    echo "==> cross: $cpu, the engine's own tests"
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
        CARGO_TARGET_DIR="$build/target" \
        env -u CARGO_UNSTABLE_BUILD_STD cargo test --locked --lib --target "$cpu-unknown-linux-gnu" \
        copy:: -- --test-threads=1
done
