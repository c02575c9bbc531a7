#!/bin/sh
# Where there is no clang, puts one into the Python environment in directory $1: the compiler of
# the PyPI package ziglang. Only tests need it, and it is large.
set -eu
venv=$1

if command -v clang >/dev/null && command -v clang++ >/dev/null; then
    exit 0
fi
echo "==> from PyPI into $venv: ziglang"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint requirements-dev.txt ziglang || {
    echo "error: pip could not install ziglang: is there a network? Or install clang" >&2
    exit 1
}
for tool in clang:cc clang++:c++; do
    # shellcheck disable=SC2016 # for the wrapper to expand
    printf '#!/bin/sh\nexec "${0%%/*}/python" -m ziglang %s "$@"\n' "${tool#*:}" \
        >"$venv/bin/${tool%:*}"
    chmod +x "$venv/bin/${tool%:*}"
done
