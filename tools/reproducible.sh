#!/bin/sh
# Makes the release of the last commit a second time, and compares it with the one in directory $1; further arguments are the
# steps of tools/release.sh that are made. The second time, the clone lies elsewhere, the user is another one, as far as
# programs can tell, and so are the umask, the time zone, the language, the home directory and CARGO_HOME. A signature tells
# when it was made, and is not compared.
set -eu
mkdir -p "$1"
first=$(realpath "$1")
shift
elsewhere=$(mktemp -d)/a-directory-with-quite-another-name
mkdir -p "$elsewhere/home"
trap 'rm -rf "${elsewhere%/*}"' EXIT
git clone --quiet . "$elsewhere/clone"
VENV=$(realpath "${VENV:-.venv}")
export VENV ONLY_BUILD=1 RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" HOME="$elsewhere/home" CARGO_HOME="$elsewhere/cargo"
unset SIGNING_KEY

echo "==> reproducible: again, in $elsewhere"
(
    cd "$elsewhere/clone"
    umask 077
    export TZ=Pacific/Chatham LANG=C LC_ALL=C
    unshare --user --map-user=4321 --map-group=4321 tools/release.sh "$elsewhere/out" "$@"
)

cd "$elsewhere/out"
differs=
for file in *; do # among them SHA256SUMS, which is the same only if neither has a file more
    if cmp "$file" "$first/$file"; then echo "the same: $file"; else differs="$differs $file"; fi
done
[ -z "$differs" ] || { echo "error: these files differ:$differs" >&2; exit 1; }
