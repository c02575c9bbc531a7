#!/bin/sh
# Runs the C test programs of build directory $1 under valgrind: no invalid access, no use of
# undefined bytes, no leak.
set -eu
for subject in copy view infer plan bad_input overlap strides strings sub_byte parallel; do
    echo "    $subject"
    valgrind --quiet --error-exitcode=1 --leak-check=full --show-leak-kinds=all \
        --errors-for-leak-kinds=all "$1/c-tests/$subject.shared"
done
