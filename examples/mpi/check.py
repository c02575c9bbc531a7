"""Tests the MPI examples against NumPy, on 1, 2 and 4 ranks of one host; 'make mpi' runs it.

Usage: check.py BUILD MPIRUN..., the programs' directory and what starts them.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import safetensors.numpy

BUILD = pathlib.Path(sys.argv[1])
MPIRUN = sys.argv[2:]
RANKS = [1, 2, 4]

# All types of libsplit except strings and those smaller than a byte.
DTYPES = {
    "FLOAT": 4, "UINT8": 1, "INT8": 1, "UINT16": 2, "INT16": 2, "INT32": 4, "INT64": 8, "BOOL": 1,
    "FLOAT16": 2, "DOUBLE": 8, "UINT32": 4, "UINT64": 8, "COMPLEX64": 8, "COMPLEX128": 16,
    "BFLOAT16": 2, "FLOAT8E4M3FN": 1, "FLOAT8E4M3FNUZ": 1, "FLOAT8E5M2": 1, "FLOAT8E5M2FNUZ": 1,
    "FLOAT8E8M0": 1,
}

# Lengths for an axis of 7: equal, uneven, with empty ones, and with a rest.
LENGTHS = {1: ["", "7"], 2: ["", "3,4", "7,0", "-1,6"], 4: ["", "1,2,0,4", "0,0,7,0", "2,-1,1,3"]}


def lengths_of(text, ranks):
    if text:
        lengths = [int(length) for length in text.split(",")]
        return [7 - sum(lengths) - 1 if length == -1 else length for length in lengths]
    each = -(-7 // ranks)
    return [max(0, min(each, 7 - rank * each)) for rank in range(ranks)]


def pieces(array, text, axis, ranks):
    return np.split(array, np.cumsum(lengths_of(text, ranks))[:-1], axis)


def with_lengths(axis, text):
    return f"{axis}:{text}" if text else str(axis)


def sample(shape, dtype):
    random = np.random.default_rng(0)
    array = random.bytes(int(np.prod(shape)) * dtype.itemsize)
    return np.frombuffer(array, "u1" if dtype.kind == "b" else dtype).reshape(shape).astype(dtype)


class Check(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = pathlib.Path(directory.name)

    def start(self, ranks, program, *arguments):
        command = [*MPIRUN, "-n", ranks, BUILD / program, *arguments]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)

    def run_ok(self, ranks, program, *arguments):
        run = self.start(ranks, program, *arguments)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def assert_fails(self, message, ranks, program, *arguments):
        run = self.start(ranks, program, *arguments)
        self.assertNotEqual(run.returncode, 0, run.stdout)
        self.assertIn(message, run.stderr)

    def test_counts_past_2_31(self):
        self.assertIn("right", self.run_ok(1, "counts"))


class Scatter(Check):
    """The program compares every byte itself, in each of the three ways."""

    def test_every_dtype_axis_and_kind_of_lengths(self):
        for ranks in RANKS:
            cases = [(dtype, "2x7x3", 1, "7" + ",0" * (ranks - 1)) for dtype in DTYPES]
            for axis, shape in enumerate(["7x3x5", "3x7x5", "3x5x7", "1x2x1x7x1x3"]):
                for text in LENGTHS[ranks]:
                    cases += [("INT16", shape, axis, text), ("COMPLEX128", shape, axis, text)]
            cases += [("FLOAT", "0x7", 1, ""), ("FLOAT", "7", -1, "")]
            arguments = [part for dtype, shape, axis, text in cases
                         for part in (dtype, shape, with_lengths(axis, text))]
            output = self.run_ok(ranks, "scatter", *arguments)
            lines = [line for line in output.splitlines() if ", axis " in line]
            self.assertEqual(len(lines), len(cases))
            for line, (dtype, shape, axis, text) in zip(lines, cases):
                found = [int(length) for length in line.split("|")[-2].split()]
                self.assertIn(f"{dtype} {shape}, axis {with_lengths(axis, text)}", line)
                self.assertEqual(found, lengths_of(text, ranks), line)

    def test_large_pieces(self):
        self.run_ok(4, "scatter", "FLOAT", "1000x4099", "1", "UINT8", "999999x3", "1")

    def test_what_cannot_be_sent(self):
        self.assert_fails("smaller than a byte", 2, "scatter", "UINT4", "4x4", "0:2,2")
        self.assert_fails("strings are pointers", 2, "scatter", "STRING", "4x4", "0")
        self.assert_fails("no element type", 2, "scatter", "FLOAT5", "4x4", "0")
        self.assert_fails("no shape", 2, "scatter", "FLOAT", "4by4", "0")
        self.assert_fails("LENGTH", 2, "scatter", "FLOAT", "4x4", "0:1,2,1")
        self.assert_fails("usage", 2, "scatter", "FLOAT", "4x4")
        # libsplit's own words
        self.assert_fails("axis", 2, "scatter", "FLOAT", "4x4", "2")
        self.assert_fails("is 3, but the extent of the axis", 2, "scatter", "FLOAT", "4x4", "0:1,2")
        self.assert_fails("FLOAT8E5M2", 2, "scatter", "FLOAT8E5M2", "4x4", "0")


class ReadPart(Check):
    def check_parts(self, ranks, cases):
        """Cases: file, axis, lengths, array, order of the file."""
        arguments = []
        for index, (file, axis, text, _, _) in enumerate(cases):
            arguments += [file, with_lengths(axis, text), self.dir / f"part{index}"]
        output = self.run_ok(ranks, "read_part", *arguments)
        for index, (file, axis, text, array, order) in enumerate(cases):
            expected = pieces(array, text, axis, ranks)
            for rank, piece in enumerate(expected):
                with self.subTest(file=file, axis=axis, text=text, rank=rank):
                    part = self.dir / f"part{index}.{rank}"
                    self.assertEqual(part.read_bytes(), piece.tobytes(order))
                    shape = "x".join(map(str, piece.shape))
                    self.assertIn(f"{file}: rank {rank}: ", output)
                    self.assertIn(f" {shape}, {piece.nbytes} bytes\n", output)

    def test_npy(self):
        for ranks in RANKS:
            cases = []
            for index, spec in enumerate(["?", "i1", "u2", "<i4", ">i4", "i8", "f2", "f8", "c16"]):
                for order in "CF":
                    axis = index % 3
                    shape = [3, 2, 5]
                    shape[axis] = 7
                    array = np.asarray(sample(shape, np.dtype(spec)), order=order)
                    file = self.dir / f"{ranks}-{index}-{order}.npy"
                    np.save(file, array)
                    for text in LENGTHS[ranks]:
                        cases.append((file, axis - 3 * (index % 2), text, array, order))
            for name, shape in [("empty", (0, 7)), ("line", (7,)), ("lone", (1, 1, 7))]:
                file = self.dir / f"{name}.npy"
                np.save(file, np.arange(np.prod(shape)).reshape(shape))
                cases.append((file, -1, "", np.load(file), "C"))
            self.check_parts(ranks, cases)

    def test_npy_of_version_2(self):
        array = np.arange(14, dtype="<u4").reshape(2, 7)
        with open(self.dir / "two.npy", "wb") as file:
            np.lib.format.write_array(file, array, version=(2, 0))
        self.check_parts(2, [(self.dir / "two.npy", 1, "3,4", array, "C")])

    def test_safetensors(self):
        arrays = {name: sample((7, 5, 7), np.dtype(spec)) for name, spec in
                  [("a.weight", "f4"), ("b", "u1"), ("c", "f2"), ("scale", "i8"), ("mask", "?")]}
        arrays["none"] = np.zeros((0, 5, 7), "f4")
        file = self.dir / "model.safetensors"
        safetensors.numpy.save_file(arrays, file, metadata={"format": "np"})
        for ranks in RANKS:
            self.check_parts(ranks, [(f"{file}#{name}", axis, text, array, "C")
                                     for name, array in arrays.items()
                                     for axis, text in zip([2, -1, -1], LENGTHS[ranks])])

    def write_safetensors(self, header, data=b""):
        header = header if isinstance(header, bytes) else json.dumps(header).encode()
        file = self.dir / "made.safetensors"
        file.write_bytes(len(header).to_bytes(8, "little") + header + data)
        return file

    def test_bfloat16_and_float8(self):
        file = self.write_safetensors({
            "w": {"dtype": "BF16", "shape": [2, 7], "data_offsets": [0, 28]},
            "f": {"dtype": "F8_E4M3", "shape": [2, 7], "data_offsets": [28, 42]}}, bytes(range(42)))
        raw = np.frombuffer(file.read_bytes()[-42:], "u1")
        self.check_parts(2, [(f"{file}#w", 1, "3,4", raw[:28].view("u2").reshape(2, 7), "C"),
                             (f"{file}#f", 1, "3,4", raw[28:].reshape(2, 7), "C")])

    def test_places_past_2_31(self):
        """The tensor lies behind 5 GB of holes, which take no room on the disk."""
        place = 5_000_000_003
        file = self.write_safetensors({
            "hole": {"dtype": "U8", "shape": [place], "data_offsets": [0, place]},
            "w": {"dtype": "I32", "shape": [3, 7], "data_offsets": [place, place + 84]}})
        array = np.arange(21, dtype="<i4").reshape(3, 7)
        with open(file, "r+b") as writer:
            writer.seek(place, 2)
            writer.write(array.tobytes())
        self.check_parts(4, [(f"{file}#w", 1, "2,-1,1,3", array, "C")])

    def test_what_cannot_be_read(self):
        def fails(message, file, how="0"):
            self.assert_fails(message, 2, "read_part", file, how, self.dir / "part")

        file = self.dir / "array.npy"
        fails("cannot be opened", file)
        file.write_bytes(b"\x93NUMPY")
        fails("too short", file)
        np.save(file, np.zeros((4, 4)))
        fails("no tensors by name", f"{file}#a")
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])
        fails("127", file)
        file.write_bytes(whole[:60])
        fails("header is longer", file)
        file.write_bytes(whole.replace(b"(4, 4)", b"(4 !4)"))
        fails("cannot be understood", file)
        file.write_bytes(whole.replace(b"(4, 4)", b"(4,-4)"))
        fails("extent", file)
        np.save(file, np.array(["text"]))
        fails("only booleans", file)

        entry = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
        for message, changes in [
            ("does not have", {"dtype": "F6_E2M3"}),
            ("smaller than a byte", {"dtype": "F4"}),
            ("no shape", {"shape": "2x2"}),
            ("no number", {"shape": [2, "2"]}),
            ("extent", {"shape": [2, -2]}),
            ("no range", {"data_offsets": [8, 0]}),
            ("no range", {"data_offsets": [-8, 0]}),
            ("ends before", {"data_offsets": [0, 17]}),
            ("ends before", {"data_offsets": [2**62, 2**62 + 16]}),
            ("12", {"data_offsets": [0, 12]}),
            ("more elements", {"shape": [2**40, 2**40]}),
        ]:
            file = self.write_safetensors({"w": entry | changes}, bytes(16))
            with self.subTest(changes=changes):
                fails(message, f"{file}#w", "0:1,1")
        fails("no tensor of that name", f"{file}#v")
        fails("FILE.safetensors#NAME", file)
        fails("too short", f"{self.write_safetensors(b'')}#w")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
