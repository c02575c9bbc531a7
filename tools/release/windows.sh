#!/bin/sh
# The library for 64-bit Windows, built with MinGW. From the archive, as unpacked in a new place, a program is built with the
# DLL and with the static library, and run under Wine.
set -eu
. tools/release/common.sh
need x86_64-w64-mingw32-gcc-posix gcc-mingw-w64-x86-64-posix
[ -x /usr/lib/wine/wine64 ] || need wine wine wine64
wine=/usr/lib/wine/wine64
[ -x $wine ] || wine=$(command -v wine64 || command -v wine)
need_rust_for x86_64-pc-windows-gnu

name=libsplit-$version-x86_64-windows
build_library "$name" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/mingw.cmake"
rm -f "$out/$name.zip"
python3 tools/release/zip.py "$stages/$name" "$out/$name.zip"
[ -z "${ONLY_BUILD:-}" ] || exit 0

mkdir "$fresh/program" "$fresh/wine"
python3 -m zipfile -e "$out/$name.zip" "$fresh"
prefix=$fresh/$name
cp "$prefix/bin/libsplit.dll" "$fresh/program"
x86_64-w64-mingw32-gcc-posix c-tests/consumer/main.c -I "$prefix/include" -L "$prefix/lib" -lsplit -o "$fresh/program/shared.exe"
x86_64-w64-mingw32-gcc-posix c-tests/consumer/main.c -I "$prefix/include" "$prefix/lib/libsplit.a" -o "$fresh/static.exe"
for program in program/shared.exe static.exe; do
    expect '1 2 | 3 4 5 6' WINEPREFIX="$fresh/wine" WINEDEBUG=-all HOME="$fresh" "$wine" "$fresh/$program"
done
WINEPREFIX="$fresh/wine" wineserver -k || true
