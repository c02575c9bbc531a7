#!/bin/sh
# The library for macOS 11 and later, on 64-bit Arm and on Intel. It can only be linked here, and nothing can be run, which
# the archives' names say.
set -eu
. tools/release/common.sh
build=$PWD/build/macos
. tools/macos_toolchain.sh

for cpu in arm64 x86_64; do
    name=libsplit-$version-$cpu-macos-not-run
    macos_toolchain $cpu
    build_library "$name" -DCMAKE_TOOLCHAIN_FILE="$build/$cpu.cmake"
    tools/pack.sh "$stages/$name" "$out"
    [ -z "${ONLY_BUILD:-}" ] || continue
    prefix=$(unpack "$name")
    "clang-$llvm" --target=$cpu-apple-macos11 -isysroot "$sdk" -fuse-ld=lld c-tests/consumer/main.c \
        -I "$prefix/include" -L "$prefix/lib" -lsplit -o "$fresh/program"
    echo "linked, not run: $name"
done
