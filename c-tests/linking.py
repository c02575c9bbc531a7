"""A program that uses libsplit starts and splits, however it is linked, and whatever lies between the two: with symbols
bound as they are used or at the start, and with both orders in which glibc can make libraries ready.

usage: linking.py LIBRARY STATIC_LIBRARY NM WORK gcc|clang|musl
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

library, static, nm, work, compiler = sys.argv[1:]
source = Path(__file__).resolve().parent
work = Path(work)
work.mkdir(parents=True, exist_ok=True)
C, CXX = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++"), "musl": ("musl-gcc", None)}[compiler]
for each in filter(None, (C, CXX)):
    if shutil.which(each) is None:
        print(f"skipped: no {each} on this machine")
        sys.exit(77)
directory = Path(library).parent
SPLIT = source / "linking/split.c"
LIBSPLIT = ["-L", directory, "-lsplit"]
ARCHIVE = [f"-Wl,--exclude-libs,{Path(static).name}", static]
SHARED = ["-shared", "-fPIC"]
ENVIRONMENTS = [{}, {"LD_BIND_NOW": "1"}]
if compiler != "musl":
    ENVIRONMENTS += [{"GLIBC_TUNABLES": f"glibc.rtld.dynamic_sort={order}"} for order in "12"]


class Wrong(Exception):
    pass


def build(output, file, *arguments, by=C):
    """Libraries that are not needed are not named: libstdc++ would bring libc along, and hide that libsplit does not."""
    command = [by, "-x", "c++" if by == CXX else "c", source / "linking" / file, "-x", "none", *arguments,
               "-Wall", "-Wextra", "-Werror", "-I", source.parent / "include", "-o", work / output,
               "-L", work, f"-Wl,-rpath,{work}:{directory}"]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    if done.returncode != 0:
        raise Wrong(f"does not link: {done.stdout.strip()}")
    return work / output


def run(*command, **environment):
    for each in ENVIRONMENTS:
        done = subprocess.run(command, env={**os.environ, **each, **environment}, text=True, capture_output=True)
        if done.returncode != 0:
            setting = " with " + " ".join("=".join(pair) for pair in each.items()) if each else ""
            raise Wrong(f"ended with {done.returncode}{setting}: {(done.stdout + done.stderr).strip()}")


def program(*arguments, calls="split", by=C):
    """Builds a program that calls a function, and runs it."""
    run(build("program", "program.c", f"-DCALLED={calls}", "-Wl,--as-needed", *arguments, by=by))


def through(*flags, by=C, libraries=(C,)):
    """A program that calls a library, which calls another one, until the last one calls libsplit."""
    calls, needs = "split", "-luser"
    first, *others = libraries
    build("libuser.so", "split.c", *SHARED, "-Wl,--as-needed", *flags, *LIBSPLIT, by=first)
    for number, compiler_of in enumerate(others):
        function = f"between{number}"
        build(f"lib{function}.so", "between.c", f"-DCALLED={calls}", f"-DFUNCTION={function}", *SHARED,
              "-Wl,--as-needed", *flags, needs, by=compiler_of)
        calls, needs = function, f"-l{function}"
    program(*flags, needs, calls=calls, by=by)


def opened(how, path, function="split", *arguments):
    run(build("opener", "opener.c", *arguments, "-ldl"), how, path, function)


def user():
    return build("libuser.so", "split.c", *SHARED, *LIBSPLIT)


def preloaded():
    """Programs that have linked it, and one that has not."""
    run(build("program", "program.c", "-DCALLED=split", SPLIT, *LIBSPLIT), LD_PRELOAD=library)
    build("libuser.so", "split.c", *SHARED)
    run(build("program", "program.c", "-DCALLED=split", "-luser", "-Wl,--allow-shlib-undefined"),
        LD_PRELOAD=library)


def plugin():
    """It exports nothing of libsplit, and uses its own where the program has another one."""
    path = build("plugin.so", "split.c", *SHARED, *ARCHIVE)
    exported = subprocess.run([nm, "-D", "--defined-only", path], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
    if re.search(r"\blibsplit_", exported):
        raise Wrong("the plugin exports functions of libsplit")
    opened("open", path)
    opened("open", path, "split", "-rdynamic", source / "linking/other.c")


def ctypes(path, function, result):
    run(sys.executable, "-c", f"import ctypes, sys\nsys.exit({result}(ctypes.CDLL('{path}').{function}()))")


ARRANGEMENTS = {
    "direct": lambda: program(SPLIT, *LIBSPLIT),
    "direct, -lc first": lambda: program("-Wl,--no-as-needed", "-lc", SPLIT, *LIBSPLIT),
    "direct, -lm -lpthread first": lambda: program("-Wl,--no-as-needed", "-lm", "-lpthread", SPLIT, *LIBSPLIT),
    "direct, -z now": lambda: program(SPLIT, *LIBSPLIT, "-Wl,-z,now"),
    "direct, no PIE": lambda: program("-no-pie", "-fno-pie", SPLIT, *LIBSPLIT),
    "direct, -z defs": lambda: program(SPLIT, *LIBSPLIT, "-Wl,-z,defs"),
    "C through C": lambda: through(),
    "C through C, -z now": lambda: through("-Wl,-z,now"),
    "C through C, -z defs": lambda: through("-Wl,-z,defs"),
    "C through C, -lc first": lambda: through("-Wl,--no-as-needed", "-lc"),
    "C through two libraries in C": lambda: through(libraries=(C, C)),
    "dlopen": lambda: opened("open", library, "libsplit_version"),
    "dlopen of a library that uses it": lambda: opened("open", user()),
    "LD_PRELOAD": preloaded,
    "static": lambda: program(SPLIT, *ARCHIVE),
    "fully static": lambda: program(SPLIT, *ARCHIVE, "-static"),
    "inside a plugin": plugin,
}
if CXX:
    ARRANGEMENTS |= {
        "C through C++": lambda: through(libraries=(CXX,)),
        "C++ through C": lambda: through(by=CXX),
        "C++ through C++": lambda: through(by=CXX, libraries=(CXX,)),
        "C++ through C++ and C": lambda: through(by=CXX, libraries=(C, CXX)),
    }
if compiler != "musl":
    ARRANGEMENTS |= {
        "dlmopen": lambda: opened("lmopen", library, "libsplit_version"),
        "dlmopen of a library that uses it": lambda: opened("lmopen", user()),
        "ctypes": lambda: ctypes(library, "libsplit_version", "not "),
        "ctypes of a library that uses it": lambda: ctypes(user(), "split", ""),
    }

failed = 0
for name, arrangement in ARRANGEMENTS.items():
    try:
        arrangement()
        print(f"{name}: splits", flush=True)
    except Wrong as wrong:
        print(f"{name}: {wrong}", flush=True)
        failed += 1
print(f"{len(ARRANGEMENTS) - failed} of {len(ARRANGEMENTS)} arrangements with {compiler}")
sys.exit(failed > 0)
