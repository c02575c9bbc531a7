#!/bin/sh
# Builds the library and the C tests once more in another way, $1, and runs the tests:
#
#   address    AddressSanitizer, and UndefinedBehaviorSanitizer in C
#   thread     ThreadSanitizer
#   small      LIBSPLIT_AVX512=OFF, as it is delivered: the size of that, and its stack, are tested too
#
# The stable compiler takes the sanitizers' flag under RUSTC_BOOTSTRAP; their runtimes are gcc's. The
# parts of Rust's standard library that come compiled are not instrumented; the library calls next
# to nothing of them, and takes its atomics from the part that is compiled with it.
set -eu
variant=$1
build=build/$variant
sanitizer=$variant
triple=$(rustc -vV | sed -n 's/^host: //p')
build_type=RelWithDebInfo

case $variant in
address)
    options="-DCMAKE_C_FLAGS=-fsanitize=address,undefined -DCMAKE_CXX_FLAGS=-fsanitize=address,undefined"
    tests='shared$|sanitizer'
    export UBSAN_OPTIONS=halt_on_error=1
    ;;
thread)
    options="-DCMAKE_C_FLAGS=-fsanitize=thread -DCMAKE_CXX_FLAGS=-fsanitize=thread"
    tests='(plan|strides|sub_byte|parallel|neighbour|executors)[.]shared$|sanitizer'
    ;;
small)
    options=-DLIBSPLIT_AVX512=OFF
    tests='[.]shared$|[.]static$|needs_nothing'
    build_type=Release
    sanitizer=
    ;;
*)
    echo "error: usage: $0 address|thread|small" >&2
    exit 1
    ;;
esac
if [ -n "$sanitizer" ]; then
    # Frames in reports are those of the source only without LTO.
    export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true \
        RUSTC_BOOTSTRAP=1 CARGO_PROFILE_RELEASE_LTO=false \
        RUSTFLAGS="-Zsanitizer=$sanitizer -Cunsafe-allow-abi-mismatch=sanitizer"
fi

if command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
# shellcheck disable=SC2086 # several words
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=$build_type $options -DLIBSPLIT_SANITIZER="$sanitizer" \
    -DLIBSPLIT_CARGO_TARGET="$triple" -DLIBSPLIT_BUILD_EXAMPLES=OFF -DLIBSPLIT_BUILD_BENCH=OFF >/dev/null
cmake --build "$build" --parallel "$(getconf _NPROCESSORS_ONLN)"
ctest --test-dir "$build" --output-on-failure --tests-regex "$tests"
