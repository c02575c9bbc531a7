"""What the tests of the command-line tool share.

Environment: BUILD_DIR, where CMake has built cli/bin/libsplit.
"""

import json
import os
import pathlib
import resource
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBSPLIT = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build/release")) / "cli/bin/libsplit"

# Exit codes.
FAILED, USAGE, INVALID, REFUSED, EXISTS, STOPPED = 1, 2, 3, 4, 5, 130


def limit(what, number):
    """For subprocess: limits a resource of the new process."""
    return lambda: resource.setrlimit(what, (number, number))


class ToolTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = pathlib.Path(directory.name)
        self.out = self.dir / "out"

    def run_tool(self, *arguments, **options):
        command = [str(argument) for argument in [LIBSPLIT, *arguments]]
        return subprocess.run(command, capture_output=True, text=True, **options)

    def assert_succeeds(self, run):
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def assert_fails(self, run, code, *messages, left=()):
        """An error of that code with the messages, and no files but those."""
        self.assertEqual((run.returncode, run.stdout), (code, ""), run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for message in messages:
            self.assertIn(message, run.stderr)
        files = sorted(os.listdir(self.out)) if self.out.is_dir() else []
        self.assertEqual(files, sorted(left))
        self.assertEqual([], [name for name in os.listdir(self.dir) if name.startswith(".")])


def write_safetensors(path, tensors, metadata=None, order=None):
    """Writes a file by hand: tensors are (dtype, shape, bytes) by name, header and data in that
    order, or data in another."""
    header, end, data = {}, 0, b""
    for name in order or tensors:
        dtype, shape, content = tensors[name]
        header[name] = {"shape": list(shape), "dtype": dtype,
                        "data_offsets": [end, end + len(content)]}
        end += len(content)
        data += content
    header = {name: header[name] for name in tensors}
    if metadata is not None:
        header = {**header, "__metadata__": metadata}
    text = json.dumps(header, indent=1).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_index(path, files, total=True):
    """Writes files of tensors (by name) beside an index, and that."""
    for name, tensors in files.items():
        write_safetensors(path.parent / name, tensors, {"format": "pt", "of": name})
    weight_map = {tensor: name for name, tensors in files.items() for tensor in tensors}
    size = sum(len(tensor[2]) for tensors in files.values() for tensor in tensors.values())
    metadata = {"metadata": {"total_size": size, "note": "é"}} if total else {}
    path.write_text(json.dumps({**metadata, "weight_map": weight_map}))


def without_mark(metadata):
    """Metadata without what a shard says of itself."""
    kept = {key: value for key, value in (metadata or {}).items() if not key.startswith("libsplit.")}
    return kept or None


def read_safetensors(path):
    """The tensors of a file by name, as (dtype, shape, bytes), and its metadata."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    data = content[8 + length:]
    metadata = header.pop("__metadata__", None)
    tensors = {name: (it["dtype"], tuple(it["shape"]), data[slice(*it["data_offsets"])])
               for name, it in header.items()}
    return tensors, metadata
