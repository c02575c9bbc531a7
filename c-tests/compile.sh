#!/bin/sh
# Runs a compiler, $1, with the arguments after it. If this machine has no such compiler, the exit
# code is 77, so that CTest skips the test.
command -v "$1" >/dev/null || {
    echo "skipped: no $1 on this machine"
    exit 77
}
exec "$@"
