#!/bin/sh
# The sums of a release are signed with the key that SIGNING_KEY names, and users who have only its public key notice every
# change. The key is made for this test. The exit code is 77 if there is no GnuPG.
set -eu
command -v gpg >/dev/null || { echo "skipped: no gpg (Debian: gnupg)"; exit 77; }
work=$(mktemp -d)
owner=$work/owner user=$work/user out=$work/out
finish() {
    for home in "$owner" "$user"; do GNUPGHOME=$home gpgconf --kill all; done
    rm -rf "$work"
}
trap finish EXIT
mkdir -m 700 "$owner" "$user"
mkdir "$out"
echo one >"$out/one.tar.gz"
echo two >"$out/two.whl"
export out

GNUPGHOME=$owner gpg --quiet --batch --passphrase '' --quick-generate-key test@example.org ed25519 sign never
GNUPGHOME=$owner SIGNING_KEY=test@example.org tools/release/sums.sh
GNUPGHOME=$owner gpg --quiet --armor --export test@example.org | GNUPGHOME=$user gpg --quiet --import

export GNUPGHOME=$user
accepts() {
    (cd "$out" && gpg --quiet --verify SHA256SUMS.asc SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
}
accepts
echo three >>"$out/two.whl"
! accepts || { echo "error: a changed file was accepted" >&2; exit 1; }
(cd "$out" && sha256sum one.tar.gz two.whl >SHA256SUMS)
! accepts || { echo "error: changed sums were accepted" >&2; exit 1; }

(unset SIGNING_KEY && tools/release/sums.sh)
[ ! -e "$out/SHA256SUMS.asc" ] || { echo "error: signed without a key" >&2; exit 1; }
[ "$(cut -c 67- "$out/SHA256SUMS" | tr '\n' ' ')" = "one.tar.gz two.whl " ]
