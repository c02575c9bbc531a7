#!/bin/sh
# Runs a command in a fresh clone of this repository on a bare Debian, which has Rust and what the README asks for, and
# nothing else: no clang, no valgrind, no tools of this machine.
#
#   bare.sh DIRECTORY COMMAND...
#
# The bare Debian is made in DIRECTORY, unless it is there already: 0.7 GB, of the release that this machine runs and
# from where it gets its packages. That takes root, debootstrap and the right to mount; without them, the exit code
# is 77. Mounts are gone when the command ends.
set -eu
[ $# -ge 2 ] || { sed -n 's/^# \{0,1\}//; 2,9p' "$0"; exit 2; }
mkdir -p "$1"
root=$(cd "$1" && pwd)
shift

skip() {
    echo "skipped: no bare Debian: $1"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "it takes root"
command -v debootstrap >/dev/null || skip "debootstrap is missing"
unshare --mount true 2>/dev/null || skip "nothing can be mounted here"

if [ ! -e "$root/made" ]; then
    # shellcheck source=/dev/null
    . /etc/os-release
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
    [ "$mirror" ] || skip "apt has no list of packages: run 'apt-get update'"
    echo "==> bare: Debian $VERSION_CODENAME with build-essential and python3-venv, in $root"
    debootstrap --variant=minbase --include=build-essential,ca-certificates,python3-venv "$VERSION_CODENAME" \
        "$root" "$mirror" >"$root.log" 2>&1 || { tail "$root.log"; skip "debootstrap failed"; }
    touch "$root/made"
fi

# The clone has what is committed. There is no git in the bare Debian.
home=$root/root
rm -rf "$home/libsplit"
git clone --quiet --no-hardlinks . "$home/libsplit"
rm -rf "$home/libsplit/.git"

# How this machine reaches the registries: certificates, proxies, and the settings of pip and cargo.
cp /etc/resolv.conf /etc/hosts "$root/etc/"
[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
cp -r /etc/ssl/certs "$root/etc/ssl/"
mkdir -p "$home/.cargo/bin" "$home/.rustup"
for file in config.toml env; do
    [ ! -e "$HOME/.cargo/$file" ] || cp "$HOME/.cargo/$file" "$home/.cargo/"
done
settings=$(env | grep -E '^(PIP_(INDEX|EXTRA|CERT|DEFAULT)|SSL_CERT_|CARGO_(HTTP|NET|REGISTR)|[a-zA-Z]+_(proxy|PROXY)=)' ||
    true)

export root home settings
# shellcheck disable=SC2016 # what is in quotes is for the shell that unshare starts
exec unshare --mount --propagation private sh -euc '
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind --read-only "${RUSTUP_HOME:-$HOME/.rustup}" "$home/.rustup"
    mount --bind "${CARGO_HOME:-$HOME/.cargo}/bin" "$home/.cargo/bin"
    IFS="
"
    # shellcheck disable=SC2086 # one variable a line
    exec env -i HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 \
        PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin $settings \
        chroot "$root" sh -euc "cd /root/libsplit && exec \"\$@\"" sh "$@"' sh "$@"
