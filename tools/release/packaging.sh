#!/bin/sh
# The recipes for others' registries, with the address and the sums of the source archive. That for Conan is tried: the
# package is made from the archive, shared and static, and a program is built with it and run.
set -eu
. tools/release/common.sh
name=libsplit-packaging-$version
archive=libsplit-$version-src.tar.gz
repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
sum() {
    "sha$1sum" "$out/$archive" | cut -d ' ' -f 1
}
# fill URL DIRECTORY: writes the recipes there.
fill() {
    rm -rf "$2"
    cp -r packaging "$2"
    find "$2" -type f -exec sed -i "s|@version@|$version|g; s|@url@|$1|g; s|@repository@|$repository|g
        s|@sha256@|$(sum 256)|g; s|@sha512@|$(sum 512)|g" {} +
}
fill "$repository/releases/download/v$version/$archive" "$stages/$name"
tools/pack.sh "$stages/$name" "$out"
[ -z "${ONLY_BUILD:-}" ] || exit 0

[ -x build/conan/bin/conan ] || python3 -m venv build/conan
tools/pip.sh build/conan conan
fill "file://$out/$archive" "$fresh/recipes"
export CONAN_HOME="$fresh/conan" PATH="$PWD/build/conan/bin:$PATH"
conan profile detect
for shared in True False; do
    conan create "$fresh/recipes/conan" --version "$version" --options "libsplit/*:shared=$shared" 2>&1 | tee "$fresh/log"
    grep -q "^libsplit $version: 7 into 3, 3 and 1$" "$fresh/log"
done
