"""Pictures of where the pieces go. The library says where that is; none is drawn by hand."""

import ctypes
import itertools

from cases import DTYPES, Case
from runners import c

COLOURS = ["#e8a33d", "#4f9bd9", "#5fb878", "#c86fc9", "#d96a5b", "#8a8f98",
           "#b5a642"]
RED_GREEN_BLUE = ["#e58078", "#74c284", "#6fa8e0"]
CELL, GAP = 26, 18
INK, PALE = "#333333", "#f4f4f4"


def places(first=0, strides=None, **fields):
    """Returns the element numbers of each piece, in the piece's order, as libsplit_view gives them. The
    input begins at element 'first' of its memory."""
    case = Case(name="", **fields)
    bits = DTYPES[case.dtype][1]
    memory = c.memory(case)
    source, split = c.tensor(case.dtype, case.input_shape, memory), c.lengths(case)
    if strides:
        source.strides = (ctypes.c_int64 * len(strides))(*strides)
        source.data, source.data_bytes = source.data + first * bits // 8, 0
    number = ctypes.c_size_t()
    head = [ctypes.byref(source), ctypes.byref(c.params(case, split))]
    c.call("count", *head, ctypes.byref(number))
    outputs = (c.Tensor * number.value)()
    arrays = [[(ctypes.c_int64 * 8)() for _ in range(2)] for _ in outputs]
    for output, (shape, strides) in zip(outputs, arrays):
        output.shape, output.strides, output.capacity = shape, strides, 8
    c.call("view", *head, outputs, number.value)
    return [_elements(output, ctypes.addressof(memory), bits) for output in outputs]


def _elements(output, base, bits):
    first = ((output.data or base) - base) * 8 + output.bit_offset
    ranges = [range(extent) for extent in output.shape[:output.rank]]
    steps = output.strides[:output.rank]
    return [first // bits + sum(i * step for i, step in zip(index, steps))
            for index in itertools.product(*ranges)]


class Drawing:
    def __init__(self, width, height, title):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                      f'width="{width}" height="{height}" font-family="sans-serif" '
                      f'font-size="12"><title>{title}</title>'
                      f'<rect width="{width}" height="{height}" fill="white"/>']

    def cell(self, x, y, colour, text="", width=CELL):
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{CELL}" '
                          f'fill="{colour}" stroke="white"/>')
        if text != "":
            self.parts.append(f'<text x="{x + width / 2}" y="{y + 17}" text-anchor="middle" '
                              f'fill="{INK}">{text}</text>')

    def text(self, x, y, text, anchor="start"):
        self.parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{INK}">'
                          f"{text}</text>")

    def done(self):
        return "".join(self.parts) + "</svg>\n"


def colours(pieces, count, palette=COLOURS):
    owner = [PALE] * count
    for number, elements in enumerate(pieces):
        for element in elements:
            owner[element] = palette[number % len(palette)]
    return owner


def split():
    """A matrix and its pieces side by side, for the first page."""
    rows, columns, top = 3, 6, 34
    pieces = places(dtype="uint8", input_shape=[rows, columns], op="Split", opset=18, axis=1,
                    split=[2, 3, 1])
    owner = colours(pieces, rows * columns)
    drawing = Drawing(460, top + rows * CELL + 14,
                      "A tensor of 3 rows and 6 columns, split into 2, 3 and 1 columns")
    drawing.text(14, 22, "x: [3, 6]")
    for i in range(rows * columns):
        drawing.cell(14 + i % columns * CELL, top + i // columns * CELL, owner[i], i)
    drawing.text(198, top + 45, "→", "middle")
    x = 226
    for name, elements in zip("abc", pieces):
        width = len(elements) // rows
        drawing.text(x, 22, f"{name}: [3, {width}]")
        for i, element in enumerate(elements):
            drawing.cell(x + i % width * CELL, top + i // width * CELL, owner[element], element)
        x += max(width, 2) * CELL + GAP
    return drawing.done()


def crop():
    """A frame whose rows have a pitch, a region of it, and the planes of that region."""
    height, width, pitch, top, left, rows, columns = 5, 7, 24, 1, 2, 3, 4
    planes = places(first=top * pitch + 3 * left, strides=[pitch, 3, 1], dtype="uint8",
                    op="SplitToSequence", opset=11, input_shape=[rows, columns, 3], axis=2, keepdims=0)
    inside = {element // 3 * 3 for element in planes[0]}
    drawing = Drawing(640, 196, "A region of a frame, split into planes")
    drawing.text(14, 22, "frame, with 3 bytes of padding in each row")
    for y in range(height):
        for x in range(width):
            is_inside = y * pitch + 3 * x in inside
            drawing.cell(14 + x * CELL, 32 + y * CELL, COLOURS[0] if is_inside else PALE,
                         f"{y}{x}")
        drawing.cell(14 + width * CELL, 32 + y * CELL, "#bbbbbb", "")
    drawing.text(252, 100, "→", "middle")
    for number, elements in enumerate(planes):
        x = 282 + number * (columns * CELL + GAP)
        drawing.text(x, 48, ["red", "green", "blue"][number])
        for i, element in enumerate(elements):
            pixel = f"{element // pitch}{element % pitch // 3}"
            drawing.cell(x + i % columns * CELL, 58 + i // columns * CELL, RED_GREEN_BLUE[number],
                         pixel)
    drawing.text(14, 32 + height * CELL + 22, "Each cell is a pixel: its row and its column.")
    return drawing.done()


def matrix(title, rows, columns, name=lambda i: i, palette=COLOURS, **fields):
    """A matrix, its order in memory, and each piece when copied."""
    pieces = places(dtype="uint8", input_shape=[rows, columns], **fields)
    owner = colours(pieces, rows * columns, palette)
    left = 90
    width = left + rows * columns * CELL + len(pieces) * GAP
    top = 30
    below = top + rows * CELL + 20
    copied = below + CELL + 20
    drawing = Drawing(max(width, 480), copied + CELL + 10, title)
    drawing.text(10, 18, title)
    drawing.text(10, top + 17, "the tensor")
    for i in range(rows * columns):
        x, y = left + i % columns * CELL, top + i // columns * CELL
        drawing.cell(x, y, owner[i], name(i))
    drawing.text(10, below + 17, "in memory")
    for i in range(rows * columns):
        drawing.cell(left + i * CELL, below, owner[i], name(i))
    drawing.text(10, copied + 17, "copied")
    x = left
    for number, elements in enumerate(pieces):
        for element in elements:
            drawing.cell(x, copied, palette[number], name(element))
            x += CELL
        x += GAP if elements else 0
    return drawing.done()


def bars(title, cases):
    """One way to split per line, as a bar that is cut into its pieces."""
    left, line = 270, CELL + 6
    drawing = Drawing(left + 8 * CELL + 20, 30 + line * len(cases), title)
    drawing.text(10, 18, title)
    for row, (label, fields) in enumerate(cases):
        y = 30 + row * line
        drawing.text(10, y + 17, label)
        pieces = places(dtype="uint8", axis=0, **fields)
        for i, colour in enumerate(colours(pieces, fields["input_shape"][0])):
            drawing.cell(left + i * CELL, y, colour, i)
    return drawing.done()


def nibbles():
    """Packed 4-bit elements, two in each byte, and pieces that begin in the middle of one."""
    title = "Eight 4-bit elements split into 3 and the rest, which begins in the middle of a byte"
    pieces = places(op="openvino.VariadicSplit", opset=1, axis=0, dtype="uint4",
                    input_shape=[8], split=[3, -1])
    owner = colours(pieces, 8)
    drawing = Drawing(560, 150, title)
    drawing.text(10, 18, title)
    for row, (label, order) in enumerate([("view", [list(range(8))]), ("copied", pieces)]):
        y, x = 36 + row * 56, 90
        drawing.text(10, y + 17, label)
        for elements in order:
            padded = elements + [None] * (len(elements) % 2)
            for byte in range(0, len(padded), 2):
                # The first element is in the low bits, which are written to the right.
                for half, element in enumerate(reversed(padded[byte:byte + 2])):
                    empty = element is None
                    drawing.cell(x + half * CELL, y, PALE if empty else owner[element],
                                 "0" if empty else f"e{element}")
                drawing.text(x + CELL, y + CELL + 13, f"byte {byte // 2}", "middle")
                x += 2 * CELL + 8
            x += GAP
    return drawing.done()


def all_of_them():
    channel = lambda i: "RGB"[i % 3]
    part = lambda i: ["q0", "q1", "k0", "v0"][i % 4]
    return {
        "rows": matrix("Split on axis 0 of [4, 3]: 1, 2, 1. Each piece is one run.", 4, 3,
                       op="Split", opset=18, axis=0, split=[1, 2, 1]),
        "columns": matrix("Split on axis 1 of [3, 6]: 2, 3, 1. Each piece is a run in every row.",
                          3, 6, op="Split", opset=18, axis=1, split=[2, 3, 1]),
        "pixels": matrix("Four pixels of red, green and blue, split into planes.", 4, 3, channel,
                         RED_GREEN_BLUE, op="Split", opset=18, axis=1, num_outputs=3),
        "qkv": matrix("Three tokens; two query heads share one key and one value head.", 3, 4,
                      part, op="Split", opset=18, axis=1, split=[2, 1, 1]),
        "seven": bars("7 elements in 3 parts, or parts of 3", [
            ("ONNX Split-18, num_outputs 3", dict(op="Split", opset=18, input_shape=[7],
                                                  num_outputs=3)),
            ("ONNX SplitToSequence, scalar 3", dict(op="SplitToSequence", opset=11,
                                                    input_shape=[7], split=3)),
            ("ONNX SplitToSequence, no lengths", dict(op="SplitToSequence", opset=11,
                                                      input_shape=[7])),
            ("OpenVINO VariadicSplit, 3, 2, -1", dict(op="openvino.VariadicSplit", opset=1,
                                                      input_shape=[7], split=[3, 2, -1])),
            ("lengths 3, 2, 2, as in numpy.array_split", dict(
                op="Split", opset=18, input_shape=[7], split=[3, 2, 2]))]),
        "nibbles": nibbles(),
        "crop": crop(),
    }
