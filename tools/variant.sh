#!/bin/sh
# Builds the library and the C tests in another variant, $1, and runs the tests:
#
#   address    AddressSanitizer, and UndefinedBehaviorSanitizer in C
#   thread     ThreadSanitizer
#   small      LIBSPLIT_AVX512=OFF, in a release build; its size and use of the stack are tested too
#
# The stable compiler accepts the flag for sanitizers if RUSTC_BOOTSTRAP is set; their runtimes are gcc's.
# The precompiled parts of Rust's standard library are not instrumented, but libsplit calls almost nothing
# in them, and its atomics are compiled with it.
set -eu
variant=$1
build=build/$variant
sanitizer=$variant
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
    # Without LTO, so that stack frames in reports match the source.
    export CARGO_PROFILE_CAPI_DEBUG_ASSERTIONS=true CARGO_PROFILE_CAPI_OVERFLOW_CHECKS=true \
        RUSTC_BOOTSTRAP=1 CARGO_PROFILE_CAPI_LTO=false \
        RUSTFLAGS="-Zsanitizer=$sanitizer -Cunsafe-allow-abi-mismatch=sanitizer"
fi

if command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
# shellcheck disable=SC2086 # several words
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=$build_type $options -DLIBSPLIT_SANITIZER="$sanitizer" \
    -DLIBSPLIT_BUILD_EXAMPLES=OFF -DLIBSPLIT_BUILD_BENCH=OFF >/dev/null
cmake --build "$build" --parallel "$(getconf _NPROCESSORS_ONLN)"
# Not holes.shared, which takes longer than all others: 'make test' runs it at every level.
ctest --test-dir "$build" --output-on-failure --tests-regex "$tests" --label-exclude slow
