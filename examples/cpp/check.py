"""Runs the C++ examples and checks what they print.

usage: check.py PROGRAM..., named cpp_ and the example
"""

import pathlib
import subprocess
import sys

import numpy as np

PHOTO = pathlib.Path(__file__).resolve().parent.parent / "data" / "chelsea.ppm"


def planes():
    pixels = np.frombuffer(PHOTO.read_bytes(), np.uint8, offset=len(b"P6\n451 300\n255\n"))
    window = pixels.reshape(300, 451, 3)[2:-2, 2:-2]
    lines = ["447 x 296 pixels of a picture with 1408 bytes a row"]
    for index, name in enumerate(["red", "green", "blue"]):
        plane = window[..., index]
        lines.append(f"{name:5}  first {plane[0, 0]:3}, mean {plane.mean():.3f}, padding untouched")
    return lines


def audio():
    tones = [f"channel {number}: {220 * number:4} Hz, peak 0.45" for number in range(1, 7)]
    return [*tones, "interleaved again: 0 of 288000 samples differ"]


def qkv():
    rows = [("q", 32), ("k", 16), ("v", 16)]
    return [
        *(f"{name}  shape 5 x {columns}, strides 64 and 1, a view of the product"
          for name, columns in rows),
        "scores of 4 heads: largest difference from separate projections 0",
        "v copied: as projected alone",
    ]


def opencv():
    return [
        f"{size}, {channels} channels of {size_each} bytes: as cv::split, and merged again"
        for channels, size_each in [(3, 1), (2, 2), (4, 4), (1, 8)]
        for size in ["64 x 48", "30 x 20"]
    ]


for program in sys.argv[1:]:
    name = pathlib.Path(program).stem.removeprefix("cpp_")
    arguments = [PHOTO] if name == "planes" else []
    run = subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    expected = {"planes": planes, "audio": audio, "qkv": qkv, "opencv": opencv}[name]()
    assert run.stdout.splitlines() == expected, f"{name} printed\n{run.stdout}, not {expected}"
    print(f"{name}: {len(expected)} lines as expected")
assert len(sys.argv) > 3
