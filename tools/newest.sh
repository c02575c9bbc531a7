#!/bin/sh
# Builds the library and the C and C++ tests with the newest compilers that this machine can get, Debian's Rust, Clang and
# LLD, without any warning, and runs the tests that another compiler may break: how much stack a call uses, what is in the
# libraries, and their size. What is missing is installed from Debian, as root; if that fails, the exit code is 77.
set -eu
. tools/foreign.sh
build=$PWD/build/newest
need_llvm
unpack_debian_rust
export RUSTC="$debian_rust/rustc"
echo "==> newest: $("$RUSTC" --version), $("clang-$llvm" --version | head -n 1)"
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="clang-$llvm" \
    -DCMAKE_CXX_COMPILER="clang++-$llvm" -DLIBSPLIT_BUILD_EXAMPLES=OFF -DLIBSPLIT_BUILD_BENCH=OFF >/dev/null
cmake --build "$build" --parallel "$jobs"
# Not holes.shared, which takes longer than all others: 'make test' runs it at every level.
run_tests "$build" --label-exclude slow \
    --tests-regex '[.]shared$|[.]static$|^(abi|needs_nothing|newer_program|freestanding)$'
