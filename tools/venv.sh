#!/bin/sh
# Makes a new Python environment in directory $1, with the packages from PyPI in the file $2 if there is one.
set -eu
venv=$1
requirements=${2:-}

fail() {
    echo "error: $*" >&2
    exit 1
}

python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "$(python3 --version) is too old: install Python 3.10 or newer"
rm -rf "$venv"
python3 -m venv "$venv" || fail "no venv: install Python's venv module (Debian: python3-venv)"

if [ "$requirements" ]; then
    echo "==> from PyPI into $venv: the packages in $requirements"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --requirement "$requirements" || fail "pip could not install them: is there a network?"
fi
