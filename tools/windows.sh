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

configure() {
    cmake -S . -B "$@" -DCMAKE_BUILD_TYPE=Release -DLIBSPLIT_BUILD_EXAMPLES=OFF \
        -DLIBSPLIT_CARGO_DIR="$build/cargo" >/dev/null
}
with_mingw() {
    configure "$@" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/mingw.cmake" -DCMAKE_CROSSCOMPILING_EMULATOR="$wine"
}

echo "==> windows: MinGW"
with_mingw "$build/mingw"
cmake --build "$build/mingw" --parallel "$jobs"
in_wine "$build/mingw/lib"
run_tests "$build/mingw"

echo "==> windows: every CPU level"
with_mingw "$build/forced" -DLIBSPLIT_TEST_SWITCH=ON
subjects='copy|plan|strides|strings|sub_byte|parallel|neighbour|narrow'
# shellcheck disable=SC2046 # several words
cmake --build "$build/forced" --parallel "$jobs" --target $(echo "$subjects" | sed 's/|/ /g; s/[^ ]*/&.shared/g')
in_wine "$build/forced/lib"
for words in portable avx2 avx512 "portable low" "avx2 low" "avx512 low"; do
    echo "==> windows: $words"
    export LIBSPLIT_TEST_FORCE="$words"
    run_tests "$build/forced" --tests-regex "^($subjects)[.]shared$"
done
unset LIBSPLIT_TEST_FORCE

echo "==> windows: clang-cl and lld-link"
need_llvm
need_rust_for x86_64-pc-windows-msvc
# Of Microsoft's libraries, the DLL needs these: functions that vcruntime140.dll exports, and what compilers call as a
# function makes much room on its stack.
stand_ins=$build/stand-ins
mkdir -p "$stand_ins"
printf 'LIBRARY VCRUNTIME140.dll\nEXPORTS\nmemcpy\nmemmove\nmemset\nmemcmp\n' >"$stand_ins/vcruntime.def"
"llvm-dlltool-$llvm" -m i386:x86-64 -d "$stand_ins/vcruntime.def" -l "$stand_ins/vcruntime.lib"
"clang-$llvm" --target=x86_64-pc-windows-msvc -c -o "$stand_ins/msvcrt.obj" -x assembler - <<'END'
    .globl __chkstk
__chkstk: # touches every page of the %rax bytes below
    pushq %rcx
    pushq %rax
    leaq 24(%rsp), %rcx
1:  cmpq $4096, %rax
    jb 2f
    subq $4096, %rcx
    orq $0, (%rcx)
    subq $4096, %rax
    jmp 1b
2:  subq %rax, %rcx
    orq $0, (%rcx)
    popq %rax
    popq %rcx
    retq
    .data
    .globl _fltused
_fltused:
    .long 0
END
rm -f "$stand_ins/msvcrt.lib"
"llvm-ar-$llvm" rcs "$stand_ins/msvcrt.lib" "$stand_ins/msvcrt.obj"
# What MinGW's linker would name, in its order.
libraries="$stand_ins/msvcrt.lib"
for file in crt2.o crtbegin.o libmingw32.a libgcc.a libmingwex.a libmsvcrt.a libkernel32.a libpsapi.a libmingwex.a crtend.o; do
    libraries="$libraries $(realpath "$(x86_64-w64-mingw32-gcc-posix -print-file-name=$file)")"
done
cat >"$build/msvc.cmake" <<END
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
set(CMAKE_C_COMPILER clang-cl-$llvm)
set(CMAKE_C_COMPILER_TARGET x86_64-pc-windows-msvc)
set(CMAKE_C_FLAGS_INIT "-fgnuc-version=12 /GS- -D__MINGW32__ -D__MINGW64__ -imsvc /usr/x86_64-w64-mingw32/include")
set(CMAKE_CXX_COMPILER CMAKE_CXX_COMPILER-NOTFOUND) # Microsoft's C++ library cannot be had here
set(CMAKE_MSVC_RUNTIME_LIBRARY "")
set(CMAKE_EXE_LINKER_FLAGS_INIT "/nodefaultlib /manifest:no /entry:mainCRTStartup /alternatename:__image_base__=__ImageBase")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "/libpath:$stand_ins")
set(CMAKE_C_STANDARD_LIBRARIES "$libraries" CACHE STRING "")
set(CMAKE_LINKER $(command -v "lld-link-$llvm"))
set(CMAKE_AR $(command -v "llvm-lib-$llvm"))
set(CMAKE_RC_COMPILER $(command -v "llvm-rc-$llvm"))
set(CMAKE_MT $(command -v "llvm-mt-$llvm"))
set(CMAKE_NM $(command -v "llvm-nm-$llvm"))
set(CMAKE_OBJDUMP x86_64-w64-mingw32-objdump)
set(CMAKE_CROSSCOMPILING_EMULATOR $wine)
END
configure "$build/msvc" -DCMAKE_TOOLCHAIN_FILE="$build/msvc.cmake"
cmake --build "$build/msvc" --parallel "$jobs"
in_wine "$build/msvc/lib"
run_tests "$build/msvc" --label-exclude slow --exclude-regex '^header'

# Whoever changes the calling convention of all functions by /Gv still calls libsplit's as they are.
echo "==> windows: clang-cl /Gv"
sed 's|/GS-|/GS- /Gv|' "$build/msvc.cmake" >"$build/msvc-gv.cmake"
configure "$build/msvc-gv" -DCMAKE_TOOLCHAIN_FILE="$build/msvc-gv.cmake"
cmake --build "$build/msvc-gv" --parallel "$jobs" --target infer.shared bad_input.shared overlap.shared
in_wine "$build/msvc-gv/lib"
run_tests "$build/msvc-gv" --tests-regex '^(infer|bad_input|overlap)[.]shared$'
