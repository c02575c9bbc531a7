#!/bin/sh
# Runs a compiler, $1, with the arguments after it; the exit code is 77, for CTest to skip the test, where
# this machine has no such compiler.
command -v "$1" >/dev/null || {
    echo "skipped: no $1 on this machine"
    exit 77
}
exec "$@"
