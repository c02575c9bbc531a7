"""Builds the crate around this directory with cargo, and puts its shared library into the wheel.

A source distribution has the crate, and the library that it is built from, in its directory 'rust'.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tomllib

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
PACKED = HERE / "rust"  # in a source distribution
CRATE = PACKED / "adapters/onnxruntime" if PACKED.exists() else HERE.parent
LIBRARY = CRATE.parent.parent
SCRATCH = LIBRARY / "build/python"  # rather than among the sources


def crate_version() -> str:
    if not (CRATE / "Cargo.toml").exists():
        raise SystemExit("error: no crate around this directory: build from a clone of libsplit")
    version: str = tomllib.loads((CRATE / "Cargo.toml").read_text())["package"]["version"]
    return version


def build_library() -> pathlib.Path:
    """Runs cargo, and returns the path of the shared library."""
    cargo = shutil.which("cargo", path=f"{os.environ['PATH']}:{pathlib.Path.home()}/.cargo/bin")
    if cargo is None:
        raise SystemExit("error: no cargo: install Rust with rustup")
    command = [cargo, "build", "--locked", "--release", "--message-format",
               "json-render-diagnostics"]
    environment = {"CARGO_TARGET_DIR": str(SCRATCH / "cargo")} | os.environ
    built = subprocess.run(command, cwd=CRATE, env=environment, stdout=subprocess.PIPE)
    if built.returncode != 0:
        raise SystemExit(f"error: '{' '.join(command)}' failed in {CRATE}; see above")
    messages = map(json.loads, built.stdout.splitlines())
    return next(
        pathlib.Path(file)
        for message in messages if message["reason"] == "compiler-artifact"
        for file in message["filenames"] if "split_onnxruntime" in os.path.basename(file)
    )


class BuildWithLibrary(build_py):
    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)  # what an earlier version left
        super().run()
        package = pathlib.Path(self.get_package_dir("libsplit_onnxruntime") if self.editable_mode
                               else f"{self.build_lib}/libsplit_onnxruntime")
        shutil.copy2(build_library(), package)


class WithLibrary(Distribution):
    def has_ext_modules(self) -> bool:
        return True  # for one platform only


class PlatformWheel(bdist_wheel):
    """A wheel for every Python 3, because nothing in it is compiled against Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class WithCrate(sdist):
    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        rust = pathlib.Path(base_dir, "rust")
        if PACKED.exists():
            shutil.copytree(PACKED, rust, ignore=shutil.ignore_patterns("build"))
            return
        crates = {LIBRARY: ["build.rs", "src", "include", "README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"],
                  CRATE: ["build.rs", "src"]}
        for crate, names in crates.items():
            for name in ["Cargo.toml", "Cargo.lock", *names]:
                here, there = crate / name, rust / crate.relative_to(LIBRARY) / name
                there.parent.mkdir(parents=True, exist_ok=True)
                if here.is_dir():
                    shutil.copytree(here, there)
                else:
                    shutil.copy2(here, there)


SCRATCH.mkdir(parents=True, exist_ok=True)
setup(
    version=crate_version(),
    distclass=WithLibrary,
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel, "sdist": WithCrate},
    options={"build": {"build_base": str(SCRATCH)}, "egg_info": {"egg_base": str(SCRATCH)}},
)
