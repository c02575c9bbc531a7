#!/bin/sh
# Where there is no clang, puts one into the Python environment in directory $1: the compiler of
# the PyPI package ziglang. Only tests need it, and it is large.
set -eu
venv=$1

if command -v clang >/dev/null && command -v clang++ >/dev/null; then
    exit 0
fi
tools/pip.sh "$venv" ziglang
for tool in clang:cc clang++:c++; do
    # shellcheck disable=SC2016 # for the wrapper to expand
    printf '#!/bin/sh\nexec "${0%%/*}/python" -m ziglang %s "$@"\n' "${tool#*:}" \
        >"$venv/bin/${tool%:*}"
    chmod +x "$venv/bin/${tool%:*}"
done
