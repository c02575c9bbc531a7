#!/bin/sh
# Installs packages, all arguments after the first, into the Python environment in directory $1, from PyPI
# at the versions of tools/requirements-dev.txt.
set -eu
venv=$1
shift
echo "==> from PyPI into $venv: $*"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint tools/requirements-dev.txt "$@" || {
    echo "error: pip could not install them: is there a network?" >&2
    exit 1
}
