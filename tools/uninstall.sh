#!/bin/sh
# Removes from prefix $2 the files that an installation from build directory $1 puts there, of all components that have
# been built; honours DESTDIR. To know them, it installs to an empty directory.
set -eu
build=$1
prefix=$2
into=${DESTDIR-}

[ -e "$build/cmake_install.cmake" ] || {
    echo "error: nothing is built in $build, so what was installed is not known" >&2
    exit 1
}
list=$(mktemp -d)
trap 'rm -rf "$list"' EXIT
DESTDIR=$list cmake --install "$build" --prefix "$prefix" >/dev/null
for component in debug tool onnxruntime; do
    DESTDIR=$list cmake --install "$build" --prefix "$prefix" --component $component >/dev/null 2>&1 || true
done
rm -f "$build"/install_manifest*.txt

cd "$list"
find . -not -type d | while read -r file; do
    rm -f "$into/$file"
done
# Directories of its own.
find . -depth -type d \( -name libsplit -o -path '*/.build-id/*' \) | while read -r directory; do
    rmdir "$into/$directory" 2>/dev/null || true
done
