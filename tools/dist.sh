#!/bin/sh
# Writes the source archive of the last commit into directory $1, together with the crates that it is built from, so that
# building it takes no network. The archive is made twice, to check that it is reproducible, and unpacked to check that
# nothing is missing.
set -eu
mkdir -p "$1"
out=$(realpath "$1")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
name=libsplit-$version-src
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
look=$(mktemp -d)
trap 'rm -rf "$look"' EXIT

# archive DIRECTORY: unpacks the commit there, adds the crates of all its workspaces, and packs both.
archive() {
    mkdir -p "$1/packed"
    git archive --format=tar --prefix="$name/" HEAD | tar -x -C "$1"
    (
        cd "$1/$name"
        set --
        for lock in */Cargo.lock adapters/*/Cargo.lock; do
            set -- "$@" --sync "${lock%lock}toml"
        done
        cargo vendor --locked --versioned-dirs "$@" vendor >"$look/replacement" 2>/dev/null
        { echo && cat "$look/replacement"; } >>.cargo/config.toml
    )
    tools/pack.sh "$1/$name" "$1/packed"
}

archive "$look/first"
(umask 077 && TZ=Asia/Tokyo archive "$look/second")
cmp "$look/first/packed/$name.tar.gz" "$look/second/packed/$name.tar.gz" ||
    { echo "error: the archive is not reproducible: a second one differs" >&2; exit 1; }

mkdir "$look/unpacked" "$look/cargo-home"
tar -xzf "$look/first/packed/$name.tar.gz" -C "$look/unpacked"
git ls-tree -r --name-only HEAD | LC_ALL=C sort >"$look/committed"
(cd "$look/unpacked/$name" && find . -path ./vendor -prune -o \( -type f -o -type l \) -print) | sed 's|^\./||' |
    LC_ALL=C sort | cmp - "$look/committed"
(
    cd "$look/unpacked/$name"
    for lock in Cargo.lock */Cargo.lock adapters/*/Cargo.lock; do
        CARGO_HOME="$look/cargo-home" cargo metadata --locked --offline --format-version=1 \
            --manifest-path "${lock%lock}toml" >/dev/null
    done
)
cp "$look/first/packed/$name.tar.gz" "$out"
(cd "$out" && sha256sum "$name.tar.gz")
