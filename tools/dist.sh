#!/bin/sh
# Writes the source archive of the last commit into directory $1, reproducibly. The archive is made twice to
# check that, and unpacked to check that nothing is missing.
set -eu
export LC_ALL=C
out=$1
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
name=libsplit-$version

archive() {
    # Names, modes and times come from the commit; gzip adds no name or time.
    git -c tar.umask=0022 archive --format=tar --prefix="$name/" HEAD | gzip --no-name --best
}

mkdir -p "$out"
archive >"$out/$name.tar.gz"
sleep 1
again=$(TZ=Asia/Tokyo archive | sha256sum | cut -d ' ' -f 1)
(cd "$out" && sha256sum "$name.tar.gz" | tee "$name.tar.gz.sha256" | grep -q "^$again ") ||
    { echo "error: the archive is not reproducible: a second one differs" >&2; exit 1; }

look=$(mktemp -d)
trap 'rm -rf "$look"' EXIT
tar -xzf "$out/$name.tar.gz" -C "$look"
git ls-tree -r --name-only HEAD | sort >"$look/committed"
(cd "$look/$name" && find . -type f -o -type l) | sed 's|^\./||' | sort | cmp - "$look/committed"
cat "$out/$name.tar.gz.sha256"
