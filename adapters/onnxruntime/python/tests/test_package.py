"""The wheel: what is in it, and what it does if nothing else is installed."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tomllib
import venv
import zipfile

import pytest

PYTHON = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "libsplit_onnxruntime"


def run(
    *command: object, cwd: pathlib.Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    arguments = list(map(str, command))
    return subprocess.run(arguments, cwd=cwd, env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Builds it with the installed setuptools; 'pip install' without options would download one."""
    out = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation",
               "--wheel-dir", out, PYTHON)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = out.iterdir()
    return path


@pytest.fixture(scope="module")
def clean_python(wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Returns the Python of an environment with only the wheel."""
    directory = tmp_path_factory.mktemp("venv")
    venv.create(directory)
    python = directory / "bin/python"
    done = run(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", wheel)
    assert done.returncode == 0, done.stdout + done.stderr
    return python


def test_the_wheel_is_for_any_python_on_this_platform(wheel: pathlib.Path) -> None:
    version = tomllib.loads((PYTHON.parent / "Cargo.toml").read_text())["package"]["version"]
    assert re.fullmatch(rf"{PACKAGE}-{re.escape(version)}-py3-none-linux_\w+\.whl", wheel.name)


def test_the_wheel_holds_all_it_should_and_no_more(wheel: pathlib.Path) -> None:
    sources = PYTHON / "src" / PACKAGE
    wanted = {str(file.relative_to(sources.parent)) for file in sources.rglob("*.py")}
    wanted |= {f"{PACKAGE}/py.typed", f"{PACKAGE}/libsplit_onnxruntime.so"}
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == wanted
    licences = {pathlib.Path(name).name for name in names if "/licenses/" in name}
    assert licences == {"LICENSE-APACHE", "LICENSE-MIT"}


def test_installed_alone_it_says_what_is_missing(clean_python: pathlib.Path) -> None:
    script = (
        "import ctypes, libsplit_onnxruntime as ls\n"
        "library = ctypes.CDLL(ls.get_library_path())\n"
        "library.CreateEpFactories, library.ReleaseEpFactory, library.RegisterCustomOps\n"
        "print(ls.__version__)\n"
        "ls.session('model.onnx')"
    )
    done = run(clean_python, "-c", script)
    assert done.returncode == 1
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", done.stdout)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: libsplit_onnxruntime needs onnxruntime 1.24 or newer, which cannot be "
        "imported (No module named 'onnxruntime'): pip install 'onnxruntime>=1.24'"
    )


def test_the_sources_are_not_taken_for_the_package() -> None:
    script = f"import {PACKAGE} as ls; ls.get_library_path()"
    done = run(sys.executable, "-c", script, cwd=PYTHON / "src")
    assert "import the installed package" in done.stderr.splitlines()[-1]


def test_the_sdist_has_what_cargo_needs(tmp_path: pathlib.Path) -> None:
    script = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    done = run(sys.executable, "-c", script, cwd=PYTHON)
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.iterdir()
    done = run("tar", "-xzf", str(archive), "-C", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    cargo = ["cargo", "metadata", "--locked", "--format-version=1", "--no-deps", "--manifest-path"]
    done = run(*cargo, str(unpacked / "rust/adapters/onnxruntime/Cargo.toml"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (unpacked / "rust/src/lib.rs").exists() and (unpacked / "src/libsplit_onnxruntime").exists()


def test_a_copy_without_the_crate_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "setup.py").write_bytes((PYTHON / "setup.py").read_bytes())
    done = run(sys.executable, "setup.py", "--version", cwd=tmp_path)
    assert done.returncode == 1
    assert "error: no crate around this directory: build from a clone" in done.stderr


def test_no_cargo(tmp_path: pathlib.Path) -> None:
    done = run(sys.executable, "setup.py", "-q", "build", cwd=PYTHON,
               env={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert done.returncode == 1
    assert "error: no cargo: install Rust with rustup" in done.stderr
