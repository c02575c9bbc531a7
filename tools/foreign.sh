# shellcheck shell=sh
# What the scripts for other systems and CPUs share: packages of Debian, and Rust's libraries. Sourced from the root of
# the repository. What cannot be had ends the script with the exit code 77.
foreign=$PWD/build/foreign
debian_rust=$foreign/rust

skip() {
    echo "skipped: $*"
    exit 77
}
install() {
    apt-get -qq install -y --no-install-recommends "$@" >/dev/null || skip "apt-get could not install $*"
}

# need PROGRAM PACKAGE...: installs the packages as root on Debian if there is no such program.
need() {
    command -v "$1" >/dev/null && return
    program=$1
    shift
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || skip "no $program (Debian: $*)"
    apt-get -qq update
    install "$@"
    command -v "$program" >/dev/null || skip "no $program after the installation of $*"
}

# need_llvm: sets llvm to the newest version of Clang and LLD that the machine has, or can get.
need_llvm() {
    for llvm in $(apt-cache pkgnames clang- 2>/dev/null | sed -n 's/^clang-\([0-9]*\)$/\1/p' | sort -nr); do
        apt-cache show "lld-$llvm" "llvm-$llvm" >/dev/null 2>&1 || continue
        need "clang-$llvm" "clang-$llvm"
        need "lld-$llvm" "lld-$llvm"
        need "llvm-ar-$llvm" "llvm-$llvm"
        return
    done
    skip "no clang, lld and llvm of one version, as Debian has them"
}

# Debian's newest Rust is unpacked, and not installed: with the source of core, which is all that libsplit needs, and
# with AArch64's standard library, which Rust's test harness needs.
unpack_debian_rust() {
    [ -x "$debian_rust/rustc" ] && return
    echo "==> the compiler, from Debian"
    command -v apt-get >/dev/null || skip "no Rust for other systems: neither rustup nor Debian has it"
    apt-get -qq update
    version=$(apt-cache madison rustc-web | awk '{ print $3 }' | sort -V | tail -n 1)
    [ "$version" ] || skip "Debian has no rustc-web"
    number=$(echo "$version" | cut -d . -f 1-2)
    install "$(apt-cache depends "libstd-rust-web-$number" | sed -n 's/.*Depends: \(libllvm.*\)/\1/p')"
    rm -rf "$debian_rust" "$foreign/debs"
    mkdir -p "$foreign/debs/lists/partial"
    (cd "$foreign/debs" && apt-get -qq download "rustc-web=$version" "rust-web-src=$version" \
        "libstd-rust-web-$number=$version" "libstd-rust-web-dev=$version" 2>/dev/null) ||
        skip "apt-get could not download Rust"
    # The machine's own package lists are not changed.
    of_arm() { apt-get -qq -o APT::Architectures::=arm64 -o Dir::State::Lists="$foreign/debs/lists" "$@"; }
    (cd "$foreign/debs" && of_arm update && of_arm download "libstd-rust-web-dev:arm64=$version" 2>/dev/null) ||
        skip "apt-get could not download AArch64's standard library"
    for package in "$foreign/debs"/*.deb; do
        dpkg -x "$package" "$debian_rust"
    done
    rm -r "$foreign/debs"
    # shellcheck disable=SC2016 # for the wrapper to expand
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$debian_rust/usr/lib/$(uname -m)-linux-gnu" \
        "$debian_rust/usr/bin/rustc" >"$debian_rust/rustc"
    chmod +x "$debian_rust/rustc"
}

# need_rust_for TARGET...: Rust's libraries for these targets come from rustup. If it has none, the next builds use
# Debian's compiler and build core for themselves.
need_rust_for() {
    rustup target add "$@" 2>/dev/null || {
        unpack_debian_rust
        export RUSTC="$debian_rust/rustc" RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=core
    }
    echo "==> $("${RUSTC:-rustc}" --version) for $*"
}

# Several builds run side by side only as far as the machine has cores.
jobs=$(getconf _NPROCESSORS_ONLN)
if command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi

# run_tests BUILD [argument of ctest...]
run_tests() {
    tests_of=$1
    shift
    ctest --test-dir "$tests_of" --output-on-failure --parallel "$jobs" "$@" </dev/null
}
