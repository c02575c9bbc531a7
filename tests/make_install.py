"""'make install' fetches CMake and ninja if the machine lacks CMake, and nothing else; it needs no C++ compiler. What it
has installed, 'make uninstall' removes.

usage: make_install.py CARGO_DIRECTORY
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

cargo_dir = sys.argv[1]
SOURCE = Path(__file__).resolve().parent.parent
WORK = Path("build/make_install")  # within the sources, as make's variables are
work = SOURCE / WORK
shutil.rmtree(work, ignore_errors=True)
prefix, tools = work / "prefix", work / "tools"
tools.mkdir(parents=True)

# A machine without CMake, ninja and C++.
MISSING = re.compile(r"cmake|ctest|ninja|(.*-)?(c|g|clang)\+\+.*|python3?")
for directory in "/usr/bin", "/bin", "/usr/local/bin":
    for file in Path(directory).glob("*"):
        if not MISSING.fullmatch(file.name) and not (tools / file.name).exists():
            (tools / file.name).symlink_to(file)
(tools / "python3").symlink_to(sys._base_executable)
for tool in "cargo", "rustc":
    if not (tools / tool).exists():
        (tools / tool).symlink_to(shutil.which(tool, path=f"{os.environ['PATH']}:{Path.home()}/.cargo/bin"))
environment = {name: value for name, value in os.environ.items()
               if name not in ("CXX", "CMAKE_GENERATOR", "PYTHON", "BUILD_DIR")} | {"PATH": str(tools)}


def make(target):
    done = subprocess.run(["make", target, f"PREFIX={prefix}", f"BUILD={WORK}/build", f"VENV={WORK}/venv",
                           f"CMAKE_FLAGS=-DLIBSPLIT_CARGO_DIR={cargo_dir}"], cwd=SOURCE, env=environment,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout)
    done.check_returncode()


def files():
    return [path for path in prefix.rglob("*") if not path.is_dir()]


make("install")
assert "no C++ compiler" in (work / "build/configure.log").read_text(), "C++ was not missing"
packages = subprocess.run([work / "venv/bin/python", "-m", "pip", "list", "--format=freeze"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
names = {line.split("==")[0] for line in packages.splitlines()}
assert names - {"pip", "setuptools", "wheel"} == {"cmake", "ninja"}, names
subprocess.run(["cc", SOURCE / "c-tests/consumer/main.c", "-I", prefix / "include", "-L", prefix / "lib", "-lsplit",
                f"-Wl,-rpath,{prefix}/lib", "-o", work / "program"], check=True)
subprocess.run([work / "program"], check=True)

other = prefix / "lib" / "libother.so"
other.touch()
make("uninstall")
assert files() == [other], files()
assert not list(prefix.rglob("*libsplit*")), "directories are left"
