#!/bin/sh
# Builds the library and the C tests once more in another way, $1, and runs the tests:
#
#   address    AddressSanitizer, and UndefinedBehaviorSanitizer in C; the Rust properties as well
#   thread     ThreadSanitizer
#   avx2       LIBSPLIT_AVX512=OFF, as it is delivered: the size of that, and its stack, are tested too
#   portable   the loops for CPUs without AVX2
#   avx512     those for CPUs with AVX-512, but without VBMI
#   low        thresholds so low that small cases cross them; the engine's own tests as well
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
rust_cfg=
flags=

case $variant in
address)
    c_flags="-fsanitize=address,undefined -fno-sanitize-recover=all"
    tests='shared$|sanitizer'
    ;;
thread)
    c_flags=-fsanitize=thread
    tests='(plan|strides|sub_byte|parallel|neighbour|executors)[.]shared$|sanitizer'
    ;;
avx2)
    build_type=Release
    c_flags=
    flags=-DLIBSPLIT_AVX512=OFF
    tests='[.]shared$|[.]static$|needs_nothing'
    sanitizer=
    ;;
portable | avx512 | low)
    rust_cfg="libsplit_level=\"$variant\""
    [ $variant != low ] || rust_cfg=libsplit_low_thresholds
    c_flags=
    tests='(copy|plan|strides|strings|sub_byte|parallel|neighbour|guard_pages)[.]shared$'
    sanitizer=
    ;;
*)
    echo "error: $0 address|thread|avx2|portable|avx512|low" >&2
    exit 1
    ;;
esac
if [ $build_type != Release ]; then
    export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
fi
if [ -n "$sanitizer" ]; then
    # Frames in reports are those of the source only without LTO.
    export RUSTC_BOOTSTRAP=1 CARGO_PROFILE_RELEASE_LTO=false \
        RUSTFLAGS="-Zsanitizer=$sanitizer -Cunsafe-allow-abi-mismatch=sanitizer"
elif [ -n "$rust_cfg" ]; then
    export RUSTFLAGS="--cfg $rust_cfg"
fi

if command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=$build_type $flags -DCMAKE_C_FLAGS="$c_flags" \
    -DCMAKE_CXX_FLAGS="$c_flags" \
    -DLIBSPLIT_SANITIZER="$sanitizer" -DLIBSPLIT_CARGO_TARGET="$triple" \
    -DLIBSPLIT_BUILD_EXAMPLES=OFF -DLIBSPLIT_BUILD_BENCH=OFF
cmake --build "$build" --parallel "$(getconf _NPROCESSORS_ONLN)"
ctest --test-dir "$build" --output-on-failure --tests-regex "$tests"

if [ "$variant" = low ]; then
    CARGO_TARGET_DIR=target/low cargo test --locked --lib copy::
fi

# The Rust side: the package alone is instrumented, so that its dependencies need not be built again.
if [ "$variant" = address ]; then
    unset RUSTFLAGS
    cargo -Zprofile-rustflags test --locked \
        --config 'profile.test.package.libsplit.rustflags=["-Zsanitizer=address"]' \
        --test properties --test hostile --test conformance
    for program in target/debug/deps/properties-*; do
        nm "$program" 2>/dev/null | grep -q asan.module_ctor && exit 0
    done
    echo "error: the Rust tests were not instrumented" >&2
    exit 1
fi
