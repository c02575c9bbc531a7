#!/bin/sh
# The SHA-256 sums of all files, in SHA256SUMS, and its signature, in SHA256SUMS.asc, by the key of GnuPG that SIGNING_KEY
# names: a fingerprint, or an address. Without SIGNING_KEY there is no signature.
set -eu
cd "$out"
rm -f SHA256SUMS SHA256SUMS.asc
find . -maxdepth 1 -type f ! -name SHA256SUMS.new -printf '%P\n' | sort | xargs sha256sum -- >SHA256SUMS.new
mv SHA256SUMS.new SHA256SUMS
if [ -z "${SIGNING_KEY:-}" ]; then
    echo "not signed: SIGNING_KEY names no key"
    exit
fi
gpg --batch --yes --local-user "$SIGNING_KEY" --armor --detach-sign SHA256SUMS
gpg --batch --verify SHA256SUMS.asc SHA256SUMS
