#!/bin/sh
# The library for Linux: an archive for each CPU and C library. From each, as unpacked in a new place, a program is built
# with what pkg-config says, with the shared library and with the static one, and run; those for AArch64 under qemu.
set -eu
. tools/release/common.sh
need_llvm
need qemu-aarch64 qemu-user
need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
need musl-gcc musl-tools
need_rust_for x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu

# musl for AArch64 is in Debian's packages for that CPU, which are unpacked. With this file, Debian's compiler for glibc builds
# for that musl.
need_arm_musl() {
    arm_musl=$foreign/musl-arm64
    specs=$arm_musl/usr/lib/aarch64-linux-musl/musl-gcc.specs
    [ ! -e "$specs" ] || return 0
    mkdir -p "$foreign/lists/partial"
    (
        cd "$foreign"
        of_arm() { apt-get -qq -o APT::Architectures::=arm64 -o Dir::State::Lists="$foreign/lists" "$@"; }
        of_arm update && of_arm download musl:arm64 musl-dev:arm64
        for package in musl_*_arm64.deb musl-dev_*_arm64.deb; do
            dpkg -x "$package" "$arm_musl"
        done
    ) || skip "apt-get could not download musl for AArch64"
    sed -i "s|/usr/|$arm_musl/usr/|g" "$specs"
}

qemu=$(command -v qemu-aarch64)

for cpu in x86_64 aarch64; do
    for libc in gnu musl; do
        name=libsplit-$version-$cpu-linux-$libc
        zig_target=$(echo "$cpu-linux-$libc" | sed 's/gnu$/gnu.2.17/')
        cat >"build/$name.cmake" <<TOOLCHAIN
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $cpu)
set(CMAKE_C_COMPILER $(zig_cc "$zig_target"))
set(CMAKE_AR $(command -v "llvm-ar-$llvm"))
set(CMAKE_OBJCOPY $(command -v "llvm-objcopy-$llvm"))
set(CMAKE_READELF $(command -v "llvm-readelf-$llvm"))
TOOLCHAIN
        build_library "$name" -DCMAKE_TOOLCHAIN_FILE="$PWD/build/$name.cmake"
        tools/pack.sh "$stages/$name" "$out"
        [ -z "${ONLY_BUILD:-}" ] || continue

        prefix=$(unpack "$name")
        newest=$("llvm-readelf-$llvm" --version-info "$prefix/lib/libsplit.so" | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -n 1)
        printf '%s\nGLIBC_2.17\n' "${newest:-GLIBC_2}" | sort -VC ||
            { echo "error: $name needs $newest, which is newer than 2.17" >&2; exit 1; }
        export PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig"
        case $cpu-$libc in
        x86_64-gnu) compiler="cc" run="" ;;
        x86_64-musl) compiler="musl-gcc" run="" ;;
        aarch64-gnu) compiler=aarch64-linux-gnu-gcc run="$qemu -L /usr/aarch64-linux-gnu" ;;
        aarch64-musl)
            need_arm_musl
            compiler="aarch64-linux-gnu-gcc -specs $specs" run="$qemu -L $arm_musl"
            ;;
        esac
        for library in libsplit libsplit-static; do
            # shellcheck disable=SC2046,SC2086 # several words
            $compiler c-tests/consumer/main.c -o "$fresh/$library" $(pkg-config --cflags --libs $library)
            # shellcheck disable=SC2086
            expect '1 2 | 3 4 5 6' LD_LIBRARY_PATH="$prefix/lib" $run "$fresh/$library"
        done
        unset PKG_CONFIG_LIBDIR
    done
done
