#!/bin/sh
# Builds C tests with musl and the static library of build directory $1, and a program with the shared library,
# and runs them. The exit code is 77 if there is no musl-gcc.
set -eu
build=$1
out=build/musl

command -v musl-gcc >/dev/null || {
    echo "skipped: no musl-gcc (Debian: musl-tools)"
    exit 77
}
mkdir -p "$out"
for subject in copy view infer plan bad_input strides strings sub_byte; do
    musl-gcc -std=c11 -O1 -static -I include "c-tests/$subject.c" "$build/lib/libsplit.a" -o "$out/$subject"
    "$out/$subject"
done
musl-gcc -std=c11 -I include c-tests/consumer/main.c "$build/lib/libsplit.so" -o "$out/shared"
LD_LIBRARY_PATH=$build/lib "$out/shared"
