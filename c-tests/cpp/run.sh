#!/bin/sh
# Builds program $1, linked with the libsplit.so in directory $2, and runs it:
#
#   run.sh PROGRAM LIBDIR COMPILER ARGUMENT...
#
# The compiler 'zig' is that of the PyPI package ziglang. The arguments '+tbb' and '+dlpack' stand
# for what the PyPI packages tbb-devel and apache-tvm-ffi have: oneTBB, and the newest dlpack.h.
set -eu
program=$1
libdir=$2
compiler=$3
shift 3
python=${PYTHON:-python3}
prefix=$("$python" -c 'import sys; print(sys.prefix)')
[ "$compiler" != zig ] || compiler="$python -m ziglang c++"
for argument in "$@"; do
    shift
    case $argument in
    +tbb)
        set -- "$@" -DWITH_TBB -isystem "$prefix/include" \
            -L "$prefix/lib" -ltbb "-Wl,-rpath,$prefix/lib"
        ;;
    +dlpack)
        set -- "$@" -isystem \
            "$("$python" -c 'import tvm_ffi.libinfo as l; print(l.find_dlpack_include_path())')"
        ;;
    *)
        set -- "$@" "$argument"
        ;;
    esac
done
# shellcheck disable=SC2086 # the compiler may be a command of several words
$compiler "$@" -o "$program" -L "$libdir" -lsplit "-Wl,-rpath,$libdir"
"./$program"
