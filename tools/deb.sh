#!/bin/sh
# Builds the Debian packages into directory $1 and tests them in a root that has libc6 and nothing else: installs
# them, builds programs with them, and removes them again. lintian checks them too. With ONLY_BUILD, there are no tests.
set -eu
out=$1
build=build/deb
root=$PWD/$build/root

missing=
for tool in dpkg-shlibdeps:dpkg-dev lintian:lintian fakeroot:fakeroot; do
    command -v "${tool%:*}" >/dev/null || missing="$missing ${tool#*:}"
done
if [ "$missing" ]; then
    # shellcheck disable=SC2086 # several words
    { apt-get -qq update && apt-get -qq install -y --no-install-recommends $missing; } >/dev/null ||
        { echo "error: install$missing" >&2; exit 1; }
fi

echo "==> deb: the packages"
# A source archive has no commit, but its files have the time of one.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat --format=%Y Cargo.toml)}
export SOURCE_DATE_EPOCH
cmake -S . -B $build -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DLIBSPLIT_CARGO_DIR="$PWD/build/release/cargo" \
    -DLIBSPLIT_BUILD_TESTS=OFF -DLIBSPLIT_BUILD_EXAMPLES=OFF -DLIBSPLIT_BUILD_BENCH=OFF >/dev/null
cmake --build $build
rm -rf $build/packages $build/consumer "$root"
(cd $build && cpack -G DEB -B packages)
mkdir -p "$out"
cp $build/packages/*.deb "$out"
[ -z "${ONLY_BUILD:-}" ] || exit 0

echo "==> deb: lintian"
lintian --allow-root --fail-on error,warning $build/packages/*.deb

echo "==> deb: installed, used, removed"
in_root() {
    fakeroot dpkg --root="$root" --log=/dev/null --force-not-root "$@"
}
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/triggers"
touch "$root/var/lib/dpkg/status" "$root/var/lib/dpkg/available"
dpkg-deb --field $build/packages/libsplit0_*.deb Depends | grep -qx 'libc6 (>= 2[.][0-9]*)' ||
    { echo "error: libsplit0 does not depend on libc6 alone" >&2; exit 1; }
# As if the machine's own libc6 had been installed there.
dpkg-query --status libc6 >"$root/var/lib/dpkg/status"
in_root --install $build/packages/*.deb
debug_file=$(find "$root/usr/lib/debug/.build-id" -name '*.debug')
id=$(readelf -n "$(find "$root/usr" -name libsplit.so.0)" | sed -n 's/.*Build ID: //p')
[ "$id" ] && [ "$(echo "$debug_file" | sed 's|.*[.]build-id/||; s|/||; s|[.]debug$||')" = "$id" ] ||
    { echo "error: the debug file is not that of the library: $debug_file, $id" >&2; exit 1; }
for way in pkg-config find_package; do
    python3 c-tests/consumer.py $way --build $build --installed "$root/usr" --config Release \
        --cmake cmake --cc "${CC:-cc}" --cxx "$(command -v "${CXX:-c++}" || true)"
done
in_root --remove libsplit-dev libsplit0-dbgsym
if find "$root/usr" -path '*dev*' -o -name '*.[ah]' -o -name '*.hpp' -o -name libsplit.so | grep .; then
    echo "error: removing libsplit-dev has left these files" >&2
    exit 1
fi
LD_LIBRARY_PATH=$(dirname "$(find "$root/usr" -name libsplit.so.0)") $build/consumer/find_package/shared
in_root --purge libsplit0
if find "$root/usr" -not -type d 2>/dev/null | grep .; then
    echo "error: removing libsplit0 has left these files" >&2
    exit 1
fi
ls -l "$out"/*.deb
