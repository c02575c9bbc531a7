"""Converts the inputs and outputs of the examples to files that anyone can open; run.sh calls it.

pictures.py sheet OUTPUT.png PICTURE...   the pictures side by side
pictures.py array INPUT.ppm OUTPUT.npy    a picture as an array of height, width, colour
pictures.py image INPUT.npy OUTPUT.png    and back
"""

import sys

import numpy as np
from PIL import Image


def sheet(output, *paths):
    pictures = [np.asarray(Image.open(path).convert("RGB")) for path in paths]
    Image.fromarray(np.concatenate(pictures, axis=1)).save(output)


def array(path, output):
    np.save(output, np.asarray(Image.open(path)))


def image(path, output):
    Image.fromarray(np.load(path).squeeze()).save(output)


if __name__ == "__main__":
    {"sheet": sheet, "array": array, "image": image}[sys.argv[1]](*sys.argv[2:])
