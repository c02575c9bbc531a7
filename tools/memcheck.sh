#!/bin/sh
# Runs the C test program of build directory $1 for subject $2 under valgrind: no invalid access, no use of
# undefined bytes, no leak. The exit code is 77 if there is no valgrind.
set -eu
command -v valgrind >/dev/null || {
    echo "skipped: no valgrind (Debian: valgrind)"
    exit 77
}
exec valgrind --quiet --error-exitcode=1 --leak-check=full --show-leak-kinds=all \
    --errors-for-leak-kinds=all "$1/c-tests/$2.shared"
