#!/bin/sh
# Installs libsplit with 'cargo cinstall' in build/cinstall, and builds programs with that copy. If cargo-c is
# missing, it is built first, which takes several minutes.
set -eu
version=0.10.24
prefix=$PWD/build/cinstall/installed

if ! cargo cinstall --version 2>/dev/null | grep -q "^cargo-c $version+"; then
    # The newest of these versions; what follows the + is cargo's own.
    cargo install --locked --root build/cargo-c --version "$version" cargo-c
    export PATH="$PWD/build/cargo-c/bin:$PATH"
fi
echo "==> cinstall: $(cargo cinstall --version)"
rm -rf "$prefix"
cargo cinstall --locked --release --target-dir build/cinstall/target --prefix "$prefix" --libdir lib

# Programs linked with this libsplit.so.0 run with the one that CMake has built, if there is one, and the
# other way round.
consumer=build/cinstall/consumer
cmake_lib=build/release/lib
cflags="-I $prefix/include c-tests/consumer/main.c"
PKG_CONFIG_PATH=$prefix/lib/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046,SC2086 # several words
cc $cflags $(pkg-config --libs libsplit) -o $consumer
LD_LIBRARY_PATH=$prefix/lib $consumer
if [ -e $cmake_lib/libsplit.so.0 ]; then
    LD_LIBRARY_PATH=$cmake_lib $consumer
    # shellcheck disable=SC2086
    cc $cflags $cmake_lib/libsplit.so -o $consumer
    LD_LIBRARY_PATH=$prefix/lib $consumer
fi
# shellcheck disable=SC2086
cc $cflags "$prefix/lib/libsplit.a" -o $consumer
$consumer
python3 c-tests/linking.py "$prefix/lib/libsplit.so" "$prefix/lib/libsplit.a" nm "$PWD/build/cinstall/linking" gcc
