#!/bin/sh
# Builds program $1, linked with the libsplit.so in directory $2, and runs it:
#
#   run.sh PROGRAM LIBDIR COMPILER ARGUMENT...
#
# The compiler 'zig' is that of the PyPI package ziglang. The arguments '+tbb' and '+dlpack' stand
# for what the PyPI packages tbb-devel and apache-tvm-ffi have: oneTBB, and the newest dlpack.h. Where one
# of them is missing, the exit code is 77, for CTest to skip the test.
set -eu
program=$1
libdir=$2
compiler=$3
shift 3
python=${PYTHON:-python3}
prefix=$("$python" -c 'import sys; print(sys.prefix)')

skip() {
    echo "skipped: no $1 on this machine"
    exit 77
}
if [ "$compiler" = zig ]; then
    "$python" -m ziglang version >/dev/null 2>&1 || skip ziglang
    compiler="$python -m ziglang c++"
else
    command -v "$compiler" >/dev/null || skip "$compiler"
fi
for argument in "$@"; do
    shift
    case $argument in
    +tbb)
        [ -e "$prefix/include/tbb" ] || skip tbb-devel
        set -- "$@" -DWITH_TBB -isystem "$prefix/include" \
            -L "$prefix/lib" -ltbb "-Wl,-rpath,$prefix/lib"
        ;;
    +dlpack)
        dlpack=$("$python" -c 'import tvm_ffi.libinfo as l; print(l.find_dlpack_include_path())' \
            2>/dev/null) || skip apache-tvm-ffi
        set -- "$@" -isystem "$dlpack"
        ;;
    *)
        set -- "$@" "$argument"
        ;;
    esac
done
# shellcheck disable=SC2086 # the compiler may be a command of several words
$compiler "$@" -o "$program" -L "$libdir" -lsplit "-Wl,-rpath,$libdir"
"./$program"
