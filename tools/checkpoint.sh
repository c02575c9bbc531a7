#!/bin/sh
# Puts the checkpoint that 'make run' shards into the Python environment in directory $1, from PyPI
# at the version of requirements-dev.txt: Silero VAD, of 1.2 MB, under the MIT licence.
set -eu
venv=$1

echo "==> from PyPI into $venv: a checkpoint from silero-vad"
# Only the file in it is wanted.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint requirements-dev.txt --no-deps silero-vad || {
    echo "error: pip could not install it: is there a network?" >&2
    exit 1
}
