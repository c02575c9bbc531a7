#!/bin/sh
# Builds adapters/openvino with the libsplit of build directory $1 and with OpenVINO, which it installs from
# PyPI into the Python environment in directory $2, and runs its tests.
set -eu
build=$1
venv=$2
out=build/openvino

tools/pip.sh "$venv" openvino onnx numpy pytest
openvino=$("$venv/bin/python" -c 'import openvino; print(openvino.__path__[0])')
if command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
cmake --install "$build" --prefix "$out/installed" >/dev/null
cmake -S adapters/openvino -B "$out" -DOpenVINO_DIR="$openvino/cmake" \
    -DCMAKE_PREFIX_PATH="$PWD/$out/installed" >/dev/null
cmake --build "$out" --parallel "$(getconf _NPROCESSORS_ONLN)"
echo "==> openvino: test"
LIBSPLIT_OPENVINO=$PWD/$out/libsplit_openvino.so \
    "$venv/bin/python" -m pytest --quiet -p no:cacheprovider adapters/openvino/tests
