"""libsplit npy, against NumPy."""

import io
import json
import os
import resource
import shutil
import signal
import subprocess
import time
import warnings

import numpy as np

from common import (
    EXISTS, FAILED, INVALID, LIBSPLIT, REFUSED, ROOT, STOPPED, USAGE, ToolTest, limit)

PHOTO = ROOT / "examples/data/chelsea.ppm"

# Everything that NumPy can put into a file as so many bytes an item.
DTYPES = [np.dtype(spec) for spec in [
    "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16",
    ">i2", ">u4", ">f4", ">f8", ">c16", np.longdouble, np.clongdouble,
    "S1", "S5", "U1", "U3", ">U2", "V1", "V3", "V16",
    "M8[ns]", "m8[D]", "M8[25s]", "m8", ">M8[us]",
    [("a", "<i2"), ("b", ">f8")],
    [("x", "u1"), ("sub", [("y", "<f4", (2, 3)), ("z", "S3", 2)], (2,)), (("title", "t"), "?")],
    [("größe", "<f4")], [("長さ", "<i4"), ("it's [({", "u1")],
]] + [np.dtype([("a", "u1"), ("b", "<f8")], align=True)]

# Options for an axis of 7, and the lengths they give; 0 where the axis is dropped.
OPTIONS = [
    ("--parts 3", [3, 3, 1]),
    ("--parts 1 --opset 18", [7]),
    ("--parts 6 --clamp-uneven", [2, 2, 2, 1, 0, 0]),
    ("--lengths 2,0,5", [2, 0, 5]),
    ("--opset 2 --parts 7", [1] * 7),
    ("--opset 11 --lengths 7,0", [7, 0]),
    ("--opset 13 --lengths 3,4 --parts 2", [3, 4]),
    ("--op split-to-sequence", [1] * 7),
    ("--op split-to-sequence --keepdims 0", [None] * 7),
    ("--op split-to-sequence --keepdims 0 --each 1", [1] * 7),
    ("--op split-to-sequence --opset 11 --each 3", [3, 3, 1]),
    ("--op split-to-sequence --each 100", [7]),
    ("--op split-to-sequence --lengths 6,1", [6, 1]),
    ("--op variadic-split --lengths 2,-1,1", [2, 4, 1]),
    ("--op variadic-split --lengths=-1,7", [0, 7]),
    ("--op openvino-split --parts 7", [1] * 7),
]


def pieces(array, lengths, axis):
    if None in lengths:
        return list(np.moveaxis(array, axis, 0))
    return np.split(array, np.cumsum(lengths)[:-1], axis)


def sample(shape, dtype):
    """An array of arbitrary bytes, or of numbers where not all bytes make sense."""
    random = np.random.default_rng(0)
    if dtype.names is not None:
        array = np.zeros(shape, dtype)
        for name in dtype.names:
            field = array[name]
            field[...] = sample(field.shape, field.dtype) if field.dtype.names else (
                random.integers(0, 100, field.shape).astype(field.dtype))
        return array
    if dtype.kind in "bU" or dtype.char in "gG":
        return random.integers(0, 100, shape).astype(dtype)
    return np.frombuffer(random.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)



class Npy(ToolTest):
    def setUp(self):
        super().setUp()
        self.input = self.dir / "array.npy"

    def save(self, array):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that need a newer format
            np.save(self.input, array)
        return array

    def save_bytes(self, header, data=b"", version=b"\x01\x00"):
        size = len(header).to_bytes(2 if version[0] == 1 else 4, "little")
        self.input.write_bytes(b"\x93NUMPY" + version + size + header + data)

    def split(self, options="", **limits):
        return self.run_tool("npy", self.input, self.out, *options.split(), **limits)

    def output(self, index):
        return self.out / f"array_{index}.npy"

    def assert_splits(self, options, expected, **limits):
        """The tool succeeds, and reports and makes the expected arrays, and nothing else."""
        run = self.split(options, **limits)
        self.assert_succeeds(run)
        lines = run.stdout.splitlines()
        self.assertEqual(len(lines), len(expected))
        self.assertEqual(len(os.listdir(self.out)), len(expected))
        for index, array in enumerate(expected):
            found = np.load(self.output(index))
            self.assert_same(found, array)
            self.assertTrue(lines[index].startswith(str(self.output(index))), lines[index])
            self.assertTrue(lines[index].endswith(f"  {array.shape}"), lines[index])
            self.output(index).unlink()

    def assert_same(self, found, expected):
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
        self.assertTrue(found.flags.c_contiguous)
        if expected.dtype.names is None:
            self.assertEqual(found.tobytes(), expected.tobytes())
        else:  # Padding has no value.
            np.testing.assert_array_equal(found, expected)

    def test_every_dtype_in_both_orders_along_every_axis(self):
        for dtype in DTYPES:
            for order in "CF":
                array = np.asarray(sample((3, 4, 5), dtype), order=order)
                self.save(array)
                for axis in [0, 1, -1]:
                    with self.subTest(dtype=dtype, order=order, axis=axis):
                        lengths = [2, array.shape[axis] - 2]
                        options = f"--axis {axis} --lengths {lengths[0]},{lengths[1]}"
                        self.assert_splits(options, pieces(array, lengths, axis))

    def test_every_option_of_every_operator_along_every_axis(self):
        for axis in [0, 1, 2, -1, -2, -3]:
            shape = [3, 2, 4]
            shape[axis] = 7
            array = self.save(sample(shape, np.dtype("<i4")))
            for options, lengths in OPTIONS:
                with self.subTest(options=options, axis=axis):
                    self.assert_splits(f"{options} --axis {axis}", pieces(array, lengths, axis))

    def test_dropped_axis_of_one_and_of_bytes(self):
        for dtype in ["<f4", "U3"]:
            array = self.save(sample((3,), np.dtype(dtype)))
            scalars = [array[index:index + 1].reshape(()) for index in range(3)]
            self.assert_splits("--op split-to-sequence --keepdims 0", scalars)

    def test_empty_arrays(self):
        for shape, axis in [((0,), 0), ((0, 3), 0), ((0, 3), 1), ((2, 0, 3), -1), ((3, 0), 0)]:
            for dtype in ["<f8", "U3", "V3"]:
                for order in "CF":
                    array = self.save(np.zeros(shape, dtype, order))
                    with self.subTest(shape=shape, axis=axis, dtype=dtype):
                        lengths = [1] * shape[axis]
                        options = f"--op split-to-sequence --axis {axis}"
                        self.assert_splits(options, pieces(array, lengths, axis) if lengths else [])
        self.save(np.zeros((0, 2), "<i2"))
        self.assert_splits("--parts 3", [np.zeros((0, 2), "<i2")] * 3)

    def test_items_of_no_bytes(self):
        header = b"{'descr': '|V0', 'fortran_order': False, 'shape': (4, 3), }\n"
        self.save_bytes(header)
        self.assert_splits("--parts 2", [np.zeros((2, 3), "V0")] * 2)

    def test_ranks_up_to_numpy_s_most(self):
        array = self.save(sample((2,) * 12 + (1,) * 52, np.dtype("u1")))
        self.assert_splits("--axis 11 --parts 2", pieces(array, [1, 1], 11))

    def test_data_at_an_odd_place(self):
        array = sample((5, 2), np.dtype("<f8"))
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (5, 2)}"
        for spaces in range(8):
            self.save_bytes(header + b" " * spaces + b"\n", array.tobytes())
            self.assert_splits("--lengths 2,3", pieces(array, [2, 3], 0))

    def test_every_version_of_the_format(self):
        array = sample((4,), np.dtype([("a", "<i4")]))
        for version in [(1, 0), (2, 0), (3, 0)]:
            with open(self.input, "wb") as file:
                np.lib.format.write_array(file, array, version)
            self.assert_splits("--parts 2", pieces(array, [2, 2], 0))

    def test_a_header_too_long_for_the_first_version(self):
        array = np.zeros(2, [(f"field_with_a_long_name_{i}", "u1") for i in range(3000)])
        array["field_with_a_long_name_2999"] = [1, 2]
        self.save(array)
        self.assert_succeeds(self.split("--parts 2"))
        for index in range(2):
            found = np.load(self.output(index), max_header_size=1 << 20)
            self.assert_same(found, array[index:index + 1])

    def test_outputs_have_headers_as_numpy_writes_them(self):
        array = self.save(sample((300, 4), np.dtype("<f4")))
        self.assert_succeeds(self.split("--parts 3"))
        expected = io.BytesIO()
        np.save(expected, array[:100])
        data_at = len(expected.getvalue()) - array[:100].nbytes
        self.assertEqual(self.output(0).stat().st_size, len(expected.getvalue()))
        self.assertEqual(self.output(0).read_bytes()[:10], expected.getvalue()[:10])
        self.assertEqual(data_at % 64, 0)
        self.assertEqual(self.output(0).stat().st_mode, self.input.stat().st_mode)

    def test_what_follows_the_array_does_not_matter(self):
        array = self.save(np.arange(6))
        with open(self.input, "ab") as file:
            np.save(file, np.arange(100))
        self.assert_splits("--parts 2", pieces(array, [3, 3], 0))

    def test_large_files_on_threads_without_memory_of_their_size(self):
        array = self.save(sample((4_000_000, 3), np.dtype("<f4")))  # 48 MB
        lengths = {0: [1_500_000, 2_500_000], 1: [1, 2]}
        for axis, order in [(0, "C"), (1, "C"), (1, "F")]:
            array = self.save(np.asarray(array, order=order))
            first, second = lengths[axis]
            for threads in [1, 2]:
                options = f"--axis {axis} --lengths {first},{second} --threads {threads}"
                memory = limit(resource.RLIMIT_DATA, 16 << 20)  # mapped files do not count
                with self.subTest(options=options, order=order):
                    expected = pieces(array, lengths[axis], axis)
                    self.assert_splits(options, expected, preexec_fn=memory)

    def test_more_pieces_than_open_files_or_one_batch(self):
        array = self.save(np.arange(1100, dtype="<i8"))
        files = limit(resource.RLIMIT_NOFILE, 32)
        options = "--op split-to-sequence"
        self.assert_splits(options, pieces(array, [1] * 1100, 0), preexec_fn=files)

    def test_pieces_replace_those_of_before_only_by_force(self):
        before = self.save(np.zeros((4, 2)))
        self.assert_succeeds(self.split("--parts 2"))
        array = self.save(np.ones((4, 2)))
        left = ["array_0.npy", "array_1.npy"]
        for options in ["--parts 2", "--parts 2 --dry-run"]:
            self.assert_fails(self.split(options), EXISTS, "array_0.npy", "--force", left=left)
        self.assert_same(np.load(self.output(1)), before[2:])
        self.assert_succeeds(self.split("--parts 2 --force"))
        self.assert_same(np.load(self.output(1)), array[2:])

    def test_a_dry_run_and_json(self):
        self.save(np.zeros((4, 2), "<f4"))
        run = self.split("--parts 2 --dry-run --json")
        self.assert_succeeds(run)
        told = json.loads(run.stdout)
        self.assertEqual([piece["shape"] for piece in told["pieces"]], [[2, 2]] * 2)
        self.assertEqual(told["pieces"][1]["path"], str(self.output(1)))
        self.assertFalse(self.out.exists())
        self.assert_fails(self.split("--parts 9 --dry-run"), REFUSED, "9")
        run = self.split("--parts 2 --quiet")
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))

    def test_what_the_rules_refuse(self):
        refused = [
            ("--parts 3 --axis 2", "--axis 2 is outside [-2, 1]"),
            ("--parts 3 --axis -3", "--axis -3"),
            ("--parts 3 --axis 9223372036854775807", "axis"),
            ("--parts 3 --axis -9223372036854775808", "axis"),
            ("--parts 5", "4 parts of 2 and a last one of -1", "--balanced, --clamp-uneven, or lengths"),
            ("--parts 99999999999 --clamp-uneven", "99999999999"),
            ("--parts 2000000000 --clamp-uneven", "1000000 files"),
            ("--parts 2000000000 --balanced", "2000000000"),
            ("--parts 2 --opset 13", "equal parts", "by lengths"),
            ("--op openvino-split --parts 2", "equal parts"),
            ("--op variadic-split --lengths -1,-1", "second -1"),
            ("--op variadic-split --lengths 8,-1", "is 8"),
            ("--lengths 3,5", "the sum of --lengths is 8", "axis is 7"),
            ("--lengths 8,-1", "--lengths[1] is -1", "--op variadic-split"),
            ("--lengths 9223372036854775807,9223372036854775807", "is above"),
        ]
        for dtype in ["<i4", "U2"]:
            self.save(np.zeros((7, 2), dtype))
            for options, *messages in refused:
                with self.subTest(options=options, dtype=dtype):
                    run = self.split(options)
                    self.assert_fails(run, REFUSED, *messages)
                    for word in ["params", "num_outputs", "CLAMP_UNEVEN", "NULL"]:
                        self.assertNotIn(word, run.stderr)

    def test_options_that_make_no_sense_together(self):
        self.save(np.zeros((7, 2)))
        for options, *messages in [
            ("", "--parts N or --lengths"),
            ("--parts 2 --lengths 3,4", "both"),
            ("--parts -1", "--parts -1", "at least 1"),
            ("--parts 0", "at least 1"),
            ("--parts 7 --opset 0", "--opset is 0"),
            ("--op openvino-split --parts 7 --opset 1", "--opset"),
            ("--op openvino-split", "--parts"),
            ("--op variadic-split", "--lengths"),
            ("--op variadic-split --parts 2", "--lengths"),
            ("--each 3", "--each", "split-to-sequence"),
            ("--op split-to-sequence --each 0", "at least 1"),
            ("--op split-to-sequence --opset 10", "--opset is 10"),
            ("--op split-to-sequence --parts 2", "--parts"),
            ("--keepdims 0 --parts 2", "--keepdims"),
            ("--lengths 3,4 --balanced", "--balanced"),
            ("--op split-to-sequence --clamp-uneven", "--clamp-uneven"),
        ]:
            with self.subTest(options=options):
                self.assert_fails(self.split(options), USAGE, *messages)

    def test_lengths_that_differ_by_one_at_most(self):
        for extent, parts in [(7, 3), (6, 3), (2, 3), (0, 2)]:
            array = self.save(np.arange(extent * 2).reshape(extent, 2))
            self.assert_splits(f"--parts {parts} --balanced", np.array_split(array, parts))

    def test_a_plan_is_explained(self):
        for order, dtype, call in [("C", "<f4", "FLOAT [6, 4]"), ("F", "<f8", "DOUBLE [6, 4] by strides [1, 6]"),
                                   ("C", "U3", "UINT8 [6, 4, 12]")]:
            self.save(np.zeros((6, 4), dtype, order))
            run = self.split("--parts 2 --axis 1 --explain --dry-run")
            self.assert_succeeds(run)
            *plan, first, second = run.stdout.splitlines()
            self.assertEqual(plan[0], f"{call}, axis 1 into 2 pieces of 2")
            self.assertGreater(len(plan), 1)  # how the bytes are moved depends on the CPU
            self.assertTrue(first.startswith(str(self.output(0))))
            told = json.loads(self.split("--parts 2 --axis 1 --explain --dry-run --json").stdout)
            self.assertEqual(told["plan"].splitlines(), plan)
        self.assertFalse(self.out.exists())
        told = json.loads(self.split("--parts 2 --dry-run --json").stdout)
        self.assertIsNone(told["plan"])

    def test_lengths_with_spaces(self):
        array = self.save(np.arange(4))
        run = self.run_tool("npy", self.input, self.out, "--lengths", "3, 1")
        self.assert_succeeds(run)
        self.assert_same(np.load(self.output(0)), array[:3])

    def test_types_by_every_spelling(self):
        for spelt in ["f8", "float64", "<d", "<q", "i", "?", "=f8", "half", "longdouble", "c", "U2", "S3"]:
            dtype = np.dtype(spelt)
            array = sample((4,), dtype)
            header = f"{{'descr': '{spelt}', 'fortran_order': False, 'shape': (4,)}}\n"
            self.save_bytes(header.encode(), array.tobytes())
            self.assert_same(np.load(self.input), array)
            self.assert_splits("--parts 2", pieces(array, [2, 2], 0))
        for spelt in ["bfloat16", "<g2", "x"]:
            header = f"{{'descr': '{spelt}', 'fortran_order': False, 'shape': (4,)}}\n"
            self.save_bytes(header.encode(), bytes(64))
            run = self.split("--parts 2")
            self.assert_fails(run, INVALID, spelt, "not built into NumPy")
            self.assertNotIn("object", run.stderr)

    def test_names_that_are_not_utf_8(self):
        array = np.arange(4)
        names = [b"\xfe", b"\xff"]
        for name in names:
            path = os.path.join(os.fsencode(self.dir), name + b".npy")
            with open(path, "wb") as file:
                np.save(file, array)
            command = [LIBSPLIT, "npy", path, self.out, "--parts", "2"]
            run = subprocess.run(command, capture_output=True)
            self.assertEqual((run.returncode, run.stderr), (0, b""))
        expected = {name + b"_%d.npy" % index for name in names for index in range(2)}
        self.assertEqual(set(os.listdir(os.fsencode(self.out))), expected)

    def test_pipes_and_standard_input(self):
        array = self.save(np.arange(100_000))
        content = self.input.read_bytes()
        run = subprocess.run([LIBSPLIT, "npy", "-", self.out, "--parts", "2"], input=content,
                             capture_output=True)
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        self.assert_same(np.load(self.out / "stdin_1.npy"), array[50_000:])
        fifo = self.dir / "fifo.npy"
        os.mkfifo(fifo)
        with subprocess.Popen(["cp", self.input, fifo]) as copy:
            self.assert_succeeds(self.run_tool("npy", fifo, self.out, "--parts", 2))
            self.assertEqual(copy.wait(), 0)
        self.assert_same(np.load(self.out / "fifo_0.npy"), array[:50_000])
        with subprocess.Popen([LIBSPLIT, "npy", "-", self.out, "--parts", "2"],
                              stdin=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            time.sleep(0.2)
            run.send_signal(signal.SIGTERM)
            self.assertEqual(run.wait(), STOPPED)

    def test_element_types_that_the_version_does_not_allow(self):
        for dtype, name in [("<i4", "INT32"), ("?", "BOOL"), (">u8", "UINT64"), ("S4", "UINT8")]:
            self.save(np.zeros(4, dtype))
            self.assert_fails(self.split("--opset 1 --parts 2"), REFUSED, name, "Split-1", "Split-2")
        for dtype in ["<f2", "<f4", ">f8"]:
            array = self.save(np.ones(4, dtype))
            self.assert_splits("--opset 1 --parts 2", pieces(array, [2, 2], 0))

    def test_arrays_without_an_axis_or_with_objects(self):
        self.save(np.float32(7))
        self.assert_fails(self.split("--parts 1"), REFUSED, "rank is 0")
        self.save(np.array([1, "two", None], dtype=object))
        self.assert_fails(self.split("--parts 3"), INVALID, "dtype '|O'", "Python objects")
        self.save(np.zeros(2, [("a", "<i4"), ("b", "O")]))
        self.assert_fails(self.split("--parts 2"), INVALID, "Python objects")

    def test_truncated_files(self):
        self.save(np.arange(10.0))
        whole = self.input.read_bytes()
        for size in [*range(12), 50, 127, 128, 129, len(whole) - 1]:
            self.input.write_bytes(whole[:size])
            with self.subTest(size=size):
                message = "truncated" if size >= 10 else ".npy"
                self.assert_fails(self.split("--parts 2"), INVALID, str(self.input), message)

    def test_files_that_are_none_of_numpy_s(self):
        self.assert_fails(self.split("--parts 2"), FAILED, str(self.input), "No such file")
        self.input.mkdir()
        self.assert_fails(self.split("--parts 2"), FAILED, str(self.input), "is a directory")
        self.input.rmdir()
        for content in [PHOTO.read_bytes(), b"\x93NUMPY\x04\x00" + bytes(200)]:
            self.input.write_bytes(content)
            self.assert_fails(self.split("--parts 2"), INVALID, "not an .npy file")

    def test_headers_that_are_wrong(self):
        good = {"descr": "'<f4'", "fortran_order": "False", "shape": "(4,)"}
        changes = [
            ("descr", text, "dtype") for text in [
                "'x4'", "'<f3'", "'<f99999999999999999999'", "'|O8x'", "''", "'é'", "4", "()",
                "[('a',)]", "[('a', '<f4', -1)]", "[('a', '<f4', (-1,))]", "['<f4']",
                "[('a', '|V4611686018427387904'), ('b', '|V9223372036854775807', (2,))]",
            ]
        ] + [
            ("shape", text, "shape") for text in ["4", "(-4,)", "(4.0,)", "('4',)", "(1e9,)"]
        ] + [
            ("shape", f"({2**62}, 2, 2)", "more bytes"),
            ("shape", f"({2**62},)", "more bytes"),
            ("shape", f"({2**63},)", "shape"),
            ("shape", "(5,)", "truncated"),
            ("shape", "(" * 5000, "brackets"),
            ("descr", "[" * 30 + "]" * 30, "dtype"),
            ("descr", "[" * 100 + "]" * 100, "brackets"),
            ("descr", "'<f4', 'descr': '<f4'", "twice"),
            ("descr", "'|O8'", "Python objects"),
            ("fortran_order", "0", "fortran_order"),
            ("fortran_order", "'", "dictionary"),
        ]
        for key, text, message in changes:
            entries = (f"'{name}': {value}" for name, value in {**good, key: text}.items())
            self.save_bytes(("{" + ", ".join(entries) + "}\n").encode("latin-1"), bytes(16))
            with self.subTest(key=key, text=text[:50]):
                self.assert_fails(self.split("--parts 2"), INVALID, message)
        for header, message in [(b"{}", "descr"), (b"", "dictionary"), (b"[]", "dictionary")]:
            self.save_bytes(header)
            self.assert_fails(self.split("--parts 2"), INVALID, message)
        self.save_bytes(b"{'descr': '\xff'}", version=b"\x03\x00")
        self.assert_fails(self.split("--parts 2"), INVALID, "UTF-8")

    def test_a_header_of_brackets_takes_no_time(self):
        # It took another reader half a minute; the limit is on the processor's time.
        for header in [b"{" * 16 + b"}" * 16, b"{" * 32000 + b"}" * 32000, b"[" * 65000]:
            self.save_bytes(header, bytes(16))
            run = self.split("--parts 2", preexec_fn=limit(resource.RLIMIT_CPU, 5))
            self.assert_fails(run, INVALID, "dictionary")

    def test_empty_arrays_of_huge_extents(self):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (0, %d, 2)}"
        self.save_bytes(header % 2**40)
        self.assert_splits("--parts 2", [np.zeros((0, 2**40, 2), "<f4")] * 2)
        self.save_bytes(header % (2**63 - 1))
        self.assert_fails(self.split("--parts 2"), REFUSED)

    def test_output_directories_that_cannot_be(self):
        self.save(np.arange(4))
        self.out.write_text("a file")
        for outdir in [self.out, self.out / "below"]:
            run = self.run_tool("npy", self.input, outdir, "--parts", 2)
            self.assert_fails(run, FAILED, f"cannot write to {outdir}")
        self.assertEqual(self.out.read_text(), "a file")

    def test_a_directory_in_the_place_of_a_piece(self):
        self.save(np.arange(4))
        for index in [0, 1]:
            self.output(index).mkdir(parents=True)
            name = f"array_{index}.npy"
            self.assert_fails(self.split("--parts 2"), EXISTS, name, "directory", left=[name])
            self.output(index).rmdir()

    def test_files_without_permission(self):
        # root may read and write everything, so it runs the program as somebody else.
        program = shutil.copy(LIBSPLIT, self.dir)
        nobody = {"user": 65534} if os.geteuid() == 0 else {}
        self.dir.chmod(0o755)
        self.out.mkdir()
        self.save(np.arange(4))
        for path, mode in [(self.input, 0o000), (self.out, 0o555)]:
            before = path.stat().st_mode
            path.chmod(mode)
            command = [program, "npy", self.input, self.out, "--parts", "2"]
            run = subprocess.run(command, capture_output=True, text=True, **nobody)
            path.chmod(before)
            with self.subTest(path=path):
                self.assert_fails(run, FAILED, str(path), "Permission denied")

    def test_a_full_disk_leaves_nothing_new(self):
        self.save(np.zeros((1000, 1000)))
        full = limit(resource.RLIMIT_FSIZE, 5_000_000)
        options = "--lengths 300,700"
        run = self.split(options, preexec_fn=full)
        self.assert_fails(run, FAILED, "array_1.npy", "File too large")
        before = self.save(np.ones(1000))
        self.assert_succeeds(self.split(options))
        self.save(np.zeros((1000, 1000)))
        left = ["array_0.npy", "array_1.npy"]
        run = self.split(options + " --force", preexec_fn=full)
        self.assert_fails(run, FAILED, "File too large", left=left)
        self.assert_same(np.load(self.output(0)), before[:300])

    def test_pieces_that_cannot_be_told(self):
        array = self.save(np.arange(4))
        with open("/dev/full", "wb") as full:
            command = [LIBSPLIT, "npy", self.input, self.out, "--parts", "2"]
            run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("standard output: No space left on device", run.stderr)
        self.assert_same(np.load(self.output(1)), array[2:])  # complete, for it is the last step

    def send(self, number):
        """Splits a large file, and sends a signal as soon as there is something of the output."""
        self.save(np.zeros((40_000_000, 3), "u1"))
        command = [LIBSPLIT, "npy", self.input, self.out, "--axis", "1", "--parts", "3"]
        pipe = subprocess.PIPE
        for _ in range(10):  # for it may be done before the signal comes
            run = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
            while run.poll() is None and not (self.out.is_dir() and os.listdir(self.out)):
                time.sleep(0.001)
            run.send_signal(number)
            stdout, stderr = run.communicate()
            if run.returncode != 0:
                break
            for index in range(3):
                self.output(index).unlink()
        return subprocess.CompletedProcess(command, run.returncode, stdout, stderr)

    def test_a_signal_to_stop_leaves_nothing(self):
        self.assert_fails(self.send(signal.SIGTERM), STOPPED, "stopped")

    def test_a_sudden_end_leaves_nothing_by_the_names_of_pieces(self):
        self.assertEqual(self.send(signal.SIGKILL).returncode, -signal.SIGKILL)
        self.assertEqual(list(self.out.glob("*.npy")), [])
        array = self.save(np.arange(4))  # and nothing that is in the way of another attempt
        self.assert_succeeds(self.split("--parts 2"))
        self.assert_same(np.load(self.output(0)), array[:2])

    def test_usage(self):
        for options in ["--parts x", "--lengths 1,,2", "--each 1 --lengths 2", "--keepdims 2",
                        "--threads 0", "--op concat", "--axis"]:
            with self.subTest(options=options):
                run = self.split(options)
                self.assertEqual((run.returncode, run.stdout), (USAGE, ""))
                self.assertIn("error:", run.stderr)
        self.assertIn("--lengths", self.run_tool("npy", "--help").stdout)
