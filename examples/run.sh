#!/bin/sh
# Runs the examples on a photograph and on a checkpoint, into out/. The last part of 'make run',
# which sets
#   BUILD_DIR  where CMake has built the library, examples/planes and cli/bin/libsplit
#   PYTHON     a Python that has numpy, Pillow, safetensors and silero-vad
set -eu

BUILD_DIR=$(cd "${BUILD_DIR:-build/release}" && pwd)
PYTHON=${PYTHON:-python3}
cd "$(dirname "$0")/.."
photo=examples/data/chelsea.ppm

pictures() {
    "$PYTHON" examples/pictures.py "$@"
}

libsplit() {
    "$BUILD_DIR/cli/bin/libsplit" "$@"
}

mkdir -p out/planes

echo "== planes: splits $photo into its colours (C)"
"$BUILD_DIR/examples/planes" $photo out/planes
pictures sheet out/planes.png $photo out/planes/red.pgm out/planes/green.pgm out/planes/blue.pgm

echo "== libsplit npy: does the same with an array"
pictures array $photo out/photo.npy
libsplit npy out/photo.npy out/colours --axis -1 --parts 3 --force
libsplit npy out/photo.npy out/rows --op variadic-split --axis 0 --lengths 100,-1 --force
pictures image out/rows/photo_0.npy out/rows_0.png
pictures image out/rows/photo_1.npy out/rows_1.png

echo "== libsplit shard and join: a checkpoint for 4 ranks, for 2, and back"
"$PYTHON" examples/checkpoint.py "$BUILD_DIR/cli/bin/libsplit" out/checkpoint

cat <<'END'

A C program split a photograph into its colours. The command-line tool did the same with a NumPy
array, and split it into its first 100 rows and the rest. A checkpoint was sharded and joined. Results:

  out/planes.png               the photograph and its planes: red, green and blue
  out/planes/*.pgm             these planes
  out/colours/photo_*.npy      the same as arrays
  out/rows_0.png, rows_1.png   the first 100 rows, the rest
  out/rows/photo_*.npy         the same as arrays
  out/checkpoint/shards        the checkpoint for 4 ranks; shards-2: for 2
  out/checkpoint/joined.safetensors   joined again
END
