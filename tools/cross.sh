#!/bin/sh
# Builds the library for other CPUs, $@ (aarch64, s390x, i686, riscv64, ppc64le, armv7), and runs the C tests under qemu;
# for AArch64, which has loops of its own, also between guard pages and with larger pages, and the engine's unit tests.
# Missing compilers and qemu are installed from Debian, as root; if that fails, the exit code is 77.
set -eu
. tools/foreign.sh
build=$PWD/build/cross

# What they are called: by Rust, by Debian's compilers, and by qemu.
names_of() {
    rust_target=$1-unknown-linux-gnu
    gnu=$1-linux-gnu
    emulator=qemu-$1
    case $1 in
    i686) emulator=qemu-i386 ;;
    riscv64) rust_target=riscv64gc-unknown-linux-gnu ;;
    ppc64le)
        rust_target=powerpc64le-unknown-linux-gnu
        gnu=powerpc64le-linux-gnu
        ;;
    armv7)
        rust_target=armv7-unknown-linux-gnueabihf
        gnu=arm-linux-gnueabihf
        emulator=qemu-arm
        ;;
    esac
}

need qemu-aarch64 qemu-user
for cpu; do
    names_of "$cpu"
    need "$gnu-g++" "g++-$gnu"
    need_rust_for "$rust_target"
done

# Not soak, whose measure of memory has qemu's own in it. No tests with threads on AArch64: under qemu they sometimes
# hang before they start. Some programs take half an hour on i686. The portable loops, which all others have, are tested
# between guard pages on x86-64.
plain='copy|view|infer|bad_input|overlap|strides|strings|sub_byte|constants|narrow|cpp_split|cpp_no_exceptions|dlpack'
threads='plan|parallel|neighbour|cpp_executors'
few='bad_input|overlap|strides|strings|constants|narrow|dlpack'

# Runs the tests $3 for CPU $1 in directory $2, after options of CMake.
try() {
    cpu=$1
    directory=$build/$2
    tests=$3
    shift 3
    names_of "$cpu"
    mkdir -p "$directory"
    cat >"$directory/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $cpu)
set(CMAKE_C_COMPILER $gnu-gcc)
set(CMAKE_CXX_COMPILER $gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR $emulator -L /usr/$gnu)
END
    cmake -S . -B "$directory" -DCMAKE_TOOLCHAIN_FILE="$directory/toolchain.cmake" -DCMAKE_BUILD_TYPE=Release \
        -DLIBSPLIT_BUILD_EXAMPLES=OFF -DLIBSPLIT_BUILD_BENCH=OFF "$@" >/dev/null
    # shellcheck disable=SC2046 # several words
    cmake --build "$directory" --parallel "$jobs" --target old_program.0.1.0 \
        $(echo "$tests" | sed 's/|/ /g; s/[^ ]*/&.shared/g')
    run_tests "$directory" --tests-regex "^($tests)[.]shared$|^old_program"
}

for cpu; do
    echo "==> cross: $cpu"
    case $cpu in
    aarch64)
        try "$cpu" "$cpu" "$plain|guard_pages"
        cmake --build "$build/$cpu" --target freestanding
        run_tests "$build/$cpu" --tests-regex '^freestanding|^abi$|^needs_nothing|^newer_program|^elsewhere'
        echo "==> cross: $cpu, pages of 65536 bytes"
        QEMU_PAGESIZE=65536 run_tests "$build/$cpu" --tests-regex '^(copy|strides|sub_byte|narrow)[.]shared$'
        # Its own loops again, with stores that bypass the caches.
        echo "==> cross: $cpu, low thresholds"
        LIBSPLIT_TEST_FORCE=low try "$cpu" "$cpu-low" "$plain" -DLIBSPLIT_TEST_SWITCH=ON
        echo "==> cross: $cpu, the engine's own tests"
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
            CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
            CARGO_TARGET_DIR="$build/target" \
            env -u CARGO_UNSTABLE_BUILD_STD cargo test --locked --lib --target aarch64-unknown-linux-gnu \
            copy:: -- --test-threads=1
        ;;
    i686) try "$cpu" "$cpu" "$few" ;;
    s390x) try "$cpu" "$cpu" "$plain" ;;
    *)
        try "$cpu" "$cpu" "$plain|$threads"
        cmake --build "$build/$cpu" --target dlopen.shared
        run_tests "$build/$cpu" --tests-regex '^dlopen|^abi$|^needs_nothing|^newer_program|^elsewhere'
        ;;
    esac
done
