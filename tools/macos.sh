#!/bin/sh
# Builds the library for macOS on 64-bit Arm and on Intel, links every C and C++ test, and checks exports, imports, the
# install name and the versions. Nothing is run: there is no emulator. The compiler and linker are LLVM's; what macOS has
# to link, and the C++ compiler, come from the package ziglang of PyPI, in the environment $1. What is missing is
# installed from Debian, as root; if that fails, the exit code is 77.
set -eu
venv=$1
. tools/foreign.sh
build=$PWD/build/macos
. tools/macos_toolchain.sh

for cpu in arm64 x86_64; do
    echo "==> macos: $cpu"
    macos_toolchain $cpu
    cmake -S . -B "$build/$cpu" -DCMAKE_BUILD_TYPE=Release -DLIBSPLIT_BUILD_EXAMPLES=OFF -DLIBSPLIT_BUILD_BENCH=OFF \
        -DLIBSPLIT_CARGO_DIR="$build/cargo" -DCMAKE_TOOLCHAIN_FILE="$build/$cpu.cmake" >/dev/null
    cmake --build "$build/$cpu" --parallel "$jobs"
    run_tests "$build/$cpu" --tests-regex '^(symbols|elsewhere)$'
done
