"""The stub matches the module, and users' code passes mypy --strict."""

import pathlib
import subprocess
import sys


def test_stubs_match_the_module(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "libsplit"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_stub_has_the_docstrings(tmp_path: pathlib.Path) -> None:
    script = pathlib.Path(__file__).parents[1] / "docstrings.py"
    command = [sys.executable, str(script), "--check"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


USER = """
import numpy as np
import libsplit

x = np.zeros((2, 6), np.float32)
reveal_type(libsplit.split(x, 3)[0])
reveal_type(libsplit.join(libsplit.copy(x, [2, -1], axis=1, out=[x, x])))
reveal_type(libsplit.Plan(x, libsplit.Operator.onnx_split(num_outputs=2)).split(x))
libsplit.split([1, 2], 2)
libsplit.split(x, 2, uneven="odd")
libsplit.copy(x, [2, -1], axis=1, out=[None, x])[0].shape
libsplit.Plan(x, 2).copy(x, out=[None, x])[1].shape
libsplit.copy(x, 2, threads=2.5)
"""


def test_users_code(tmp_path: pathlib.Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    command = [sys.executable, "-m", "mypy", "--strict", "user.py"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    revealed = [line.split('"')[1] for line in checked.stdout.splitlines() if "note: Rev" in line]
    array, joined, pieces = (kind.replace("builtins.", "") for kind in revealed)
    assert array.startswith("numpy.ndarray[") and array == joined and pieces == f"list[{array}]"
    assert "floating" in array and "_32Bit" in array
    errors = [line.split(":")[1] for line in checked.stdout.splitlines() if ": error:" in line]
    assert errors == ["9", "10", "11", "12", "13"]
