"""The wheel that 'make python' builds runs on every Python and on old systems."""

import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

import libsplit

OUT = pathlib.Path(__file__).parents[2] / "out/python"


@pytest.fixture
def wheel() -> pathlib.Path:
    (wheel,) = OUT.glob("*.whl")
    return wheel


def test_one_for_all_pythons(wheel: pathlib.Path) -> None:
    version = libsplit.__version__
    assert wheel.name.startswith(f"libsplit-{version}-cp310-abi3-")
    command = [sys.executable, "-m", "abi3audit", "--strict", str(wheel)]
    audited = subprocess.run(command, capture_output=True, text=True)
    assert audited.returncode == 0, audited.stdout + audited.stderr


def test_the_tag_is_as_low_as_the_symbols_allow(wheel: pathlib.Path) -> None:
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    shown = subprocess.run(command, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    found = re.search(r'tag:\s+"(manylinux_\w+)"', shown.stdout.replace("\n", " "))
    assert found and found[1] in wheel.name, shown.stdout


def test_what_is_in_it(wheel: pathlib.Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if "dist-info" not in name}
    assert names == {
        "libsplit/__init__.py",
        "libsplit/_libsplit.abi3.so",
        "libsplit/_libsplit.pyi",
        "libsplit/py.typed",
    }
