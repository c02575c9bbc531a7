"""Tests the examples against NumPy; 'make test' runs it.

Environment: BUILD_DIR, where CMake has built examples/planes.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLANES = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build/release")) / "examples/planes"
PHOTO = ROOT / "examples/data/chelsea.ppm"
COLOURS = ["red", "green", "blue"]


class Example(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = pathlib.Path(directory.name)
        self.outdir = self.dir / "out"

    def run_example(self, *command, **options):
        command = [str(argument) for argument in command]
        return subprocess.run(command, capture_output=True, text=True, **options)

    def assert_succeeds(self, run):
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def assert_fails(self, run, *messages, left=()):
        """An error with the messages, and no files but those."""
        self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for message in messages:
            self.assertIn(message, run.stderr)
        files = sorted(os.listdir(self.outdir)) if self.outdir.is_dir() else []
        self.assertEqual(files, sorted(left))


class Planes(Example):
    def setUp(self):
        super().setUp()
        self.input = self.dir / "picture.ppm"
        self.outdir.mkdir()

    def planes(self, content):
        self.input.write_bytes(content)
        return self.run_example(PLANES, self.input, self.outdir)

    def assert_planes(self, run, pixels):
        """The example succeeds, shows the views and makes the planes of these pixels."""
        self.assert_succeeds(run)
        height, width, _ = pixels.shape
        for index, (name, plane) in enumerate(zip(COLOURS, np.moveaxis(pixels, 2, 0))):
            strides = ", ".join(str(stride) for stride in pixels.strides)
            self.assertIn(f"from byte {index} of the pixels, with strides {strides}\n", run.stdout)
            expected = b"P5\n%d %d\n255\n" % (width, height) + plane.tobytes()
            self.assertEqual((self.outdir / f"{name}.pgm").read_bytes(), expected)

    def test_the_photograph(self):
        run = self.run_example(PLANES, PHOTO, self.outdir)
        content = PHOTO.read_bytes()
        pixels = np.frombuffer(content, np.uint8, offset=len(b"P6\n451 300\n255\n"))
        self.assert_planes(run, pixels.reshape(300, 451, 3))

    def test_comments_and_white_space_in_the_header(self):
        pixels = np.arange(30, dtype=np.uint8).reshape(2, 5, 3) + 7
        for header in [b"P6 5 2 255\n", b"P6\n# made by # hand\n#\n5\t2\r\n255 ",
                       b"P6\n5 #\n2\n255\t"]:
            self.assert_planes(self.planes(header + pixels.tobytes()), pixels)
        white = np.frombuffer(b"# \n", np.uint8).reshape(1, 1, 3)  # no comment any more
        self.assert_planes(self.planes(b"P6 1 1 255\n" + white.tobytes()), white)

    def test_truncated_pictures(self):
        whole = PHOTO.read_bytes()
        header = len(b"P6\n451 300\n255\n")
        for size in range(header - 1):
            self.assert_fails(self.planes(whole[:size]), str(self.input), "not a PPM picture")
        for size in [header - 1, header, header + 1, len(whole) - 1]:
            self.assert_fails(self.planes(whole[:size]), str(self.input), "truncated")

    def test_pictures_that_are_none(self):
        for header in [b"P5 1 1 255\n", b"P3 1 1 255\n", b"P6 0 1 255\n", b"P6 1 -1 255\n",
                       b"P6 1 1 65535\n", b"P6 99999999999 1 255\n", b"P6 30001 1 255\n",
                       b"\x89PNG", b"P6 #"]:
            with self.subTest(header=header):
                self.assert_fails(self.planes(header + bytes(6)), "not a PPM picture")

    def test_files_that_cannot_be_read_or_written(self):
        self.assert_fails(self.run_example(PLANES, self.input, self.outdir), "No such file")
        self.assert_fails(self.run_example(PLANES, self.dir, self.outdir), str(self.dir))
        run = self.run_example(PLANES, PHOTO, self.dir / "none")
        self.assertEqual((run.returncode, run.stderr.count("\n")), (1, 1))
        self.assertIn("No such file", run.stderr)
        run = self.run_example(PLANES)
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn("usage:", run.stderr)

    def test_a_full_disk(self):
        (self.outdir / "green.pgm").symlink_to("/dev/full")
        run = self.run_example(PLANES, PHOTO, self.outdir)
        self.assertEqual(run.returncode, 1)
        self.assertIn("green.pgm: No space left on device", run.stderr)
        self.assertEqual(os.listdir(self.outdir), ["red.pgm"])


if __name__ == "__main__":
    unittest.main()
