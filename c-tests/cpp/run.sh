#!/bin/sh
# Builds program $1, linked with the libsplit.so in directory $2, and runs it:
#
#   run.sh PROGRAM LIBDIR COMPILER ARGUMENT...
#
# The compiler 'zig' is that of the PyPI package ziglang. The arguments '+tbb' and '+dlpack' stand for
# what the PyPI packages tbb-devel and apache-tvm-ffi contain: oneTBB, and the newest dlpack.h. If the
# compiler or one of these packages is missing, the exit code is 77, and CTest reports the test as skipped.
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
    # With a target, zig uses its own headers of the C library. Without one it uses the system's, and does
    # not find those that Debian keeps in a directory for the CPU.
    target=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("MULTIARCH") or "native")')
    compiler="$python -m ziglang c++ -target $target"
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
