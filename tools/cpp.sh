#!/bin/sh
# Puts into the Python environment in directory $1, from PyPI, what the tests of the C++ and DLPack
# headers run with: oneTBB, a library that speaks DLPack, and a compiler whose standard library has
# std::mdspan. Only tests need them, and the compiler is large.
set -eu
venv=$1

set -- apache-tvm-ffi tbb-devel ziglang
echo "==> from PyPI into $venv: $*"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint requirements-dev.txt "$@" || {
    echo "error: pip could not install them: is there a network?" >&2
    exit 1
}
