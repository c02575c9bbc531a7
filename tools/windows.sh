#!/bin/sh
# Builds the library for 64-bit Windows and runs the C and C++ tests under Wine: with MinGW, with MinGW for every CPU level
# of this machine, and with Microsoft's target, for which clang-cl compiles and lld-link links. Microsoft's headers and
# libraries cannot be had here, so that MinGW's take their place. What is missing is installed from Debian, as root; if
# that fails, the exit code is 77.
set -eu
. tools/foreign.sh
build=$PWD/build/windows
need x86_64-w64-mingw32-g++-posix g++-mingw-w64-x86-64-posix
[ -x /usr/lib/wine/wine64 ] || need wine wine wine64
wine=/usr/lib/wine/wine64
[ -x $wine ] || wine=$(command -v wine64 || command -v wine)
need_rust_for x86_64-pc-windows-gnu
mkdir -p "$build"

# Wine's directory must not be in this tree: it has a link to the root directory.
WINEPREFIX=$(mktemp -d)
export WINEPREFIX WINEDEBUG=-all
finish() {
    wineserver -k || true
    rm -rf "$WINEPREFIX"
}
trap finish EXIT
# Servers of Wine live on and would keep a pipe of this script open.
wineserver -p
"$wine" wineboot --init >/dev/null 2>&1 </dev/null

# in_wine DIRECTORY...: programs find DLLs there, and MinGW's.
in_wine() {
    WINEPATH=
    for directory in "$@" "$(dirname "$(x86_64-w64-mingw32-gcc-posix -print-file-name=libgcc_s_seh-1.dll)")" \
        "$(dirname "$(x86_64-w64-mingw32-gcc-posix -print-file-name=libwinpthread-1.dll)")"; do
        WINEPATH="$WINEPATH;Z:$(realpath "$directory" | tr / '\\')"
    done
    export WINEPATH="${WINEPATH#;}"
}

cat >"$build/mingw.cmake" <<END
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_CROSSCOMPILING_EMULATOR $wine)
END
configure() {
    cmake -S . -B "$@" -DCMAKE_BUILD_TYPE=Release -DLIBSPLIT_BUILD_EXAMPLES=OFF \
        -DLIBSPLIT_CARGO_DIR="$build/cargo" >/dev/null
}

echo "==> windows: MinGW"
configure "$build/mingw" -DCMAKE_TOOLCHAIN_FILE="$build/mingw.cmake"
cmake --build "$build/mingw" --parallel "$jobs"
in_wine "$build/mingw/lib"
run_tests "$build/mingw"

echo "==> windows: every CPU level"
configure "$build/forced" -DCMAKE_TOOLCHAIN_FILE="$build/mingw.cmake" -DLIBSPLIT_TEST_SWITCH=ON
cmake --build "$build/forced" --parallel "$jobs"
in_wine "$build/forced/lib"
for words in portable avx2 avx512 "portable low" "avx2 low" "avx512 low"; do
    echo "==> windows: $words"
    export LIBSPLIT_TEST_FORCE="$words"
    run_tests "$build/forced" --tests-regex '^(copy|plan|strides|strings|sub_byte|parallel|neighbour|narrow)[.]shared$'
done
unset LIBSPLIT_TEST_FORCE
