"""The static library needs nothing but the four functions that move bytes; the shared one takes them
from libc, any since glibc 2.17 (on RISC-V, where it is newer, the first), and names it, so that loaders make libc ready first. No code that
panics, allocates, unwinds, or reads and writes files is in them. Both keep the tables by which
debuggers find a caller. And the shared one, as it is installed, is small, and written to by nobody:
its tables are read-only once they are relocated, and its stack is not executable.

usage: needs_nothing.py WITH_SYMBOLS SHARED STATIC LEAST-LARGEST NM READELF
"""

import os
import re
import subprocess
import sys

with_symbols, shared, static, sizes, nm, readelf = sys.argv[1:]
# Compilers may call any of these. Every libc has had them since its first version, and where there
# is none, they are a dozen lines.
ALLOWED = {"memcpy", "memmove", "memset", "memcmp"}
ALLOWED.add(".TOC.")  # where POWER's addresses are counted from, which its linkers define
# These appear in Rust's names of functions, however they are mangled.
FORBIDDEN = re.compile(r"panic|unwrap_failed|expect_failed|index_fail|slice_error|begin_unwind|"
                       r"_Unwind_|\d+alloc(\d|\.\.)|__rust_|__rdl_|__rg_|malloc|"
                       r"\d+std(\d|\.\.)|3std2io")
errors = []


def run(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def symbols(*options):
    return [line.split()[0] for line in run(nm, "-P", *options).splitlines() if " " in line]


for file, options in (shared, ["-D"]), (static, []):
    wanted = {name.split("@")[0] for name in symbols(*options, "--undefined-only", file)}
    print(f"{file} imports {sorted(wanted)}")
    if wanted - ALLOWED:
        errors.append(f"{file} imports {sorted(wanted - ALLOWED)}")
segments = run(readelf, "-lW", shared)
if "GNU_RELRO" not in segments or not re.search(r"GNU_STACK.* RW ", segments):
    errors.append(f"{shared} can be written to, or its stack be run: see readelf -l")
needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run(readelf, "-d", shared))
print(f"{shared} needs {needed}")
if len(needed) != 1 or not needed[0].startswith("libc."):
    errors.append(f"{shared} needs {needed}, not libc alone")
for file in shared, static:
    # Those of 32-bit Arm have another name, and would need a library.
    if ".eh_frame" not in run(readelf, "-SW", file) and not re.search(
            r"Machine: +ARM$", run(readelf, "-h", file), flags=re.M):
        errors.append(f"{file} has no .eh_frame: debuggers lose the caller's frames")
oldest = (2, 27) if "RISC-V" in run(readelf, "-h", shared) else (2, 17)
for version in set(re.findall(r"GLIBC_([0-9.]+)", run(readelf, "-V", shared))):
    if tuple(map(int, version.split("."))) > oldest:
        errors.append(f"{shared} asks for GLIBC_{version}")
for file in with_symbols, static:
    names = symbols(file)
    # A stripped file would pass.
    if len(names) < 50:
        errors.append(f"{file} has lost its symbols: {len(names)}")
    errors += [f"{file} contains {name}" for name in names if FORBIDDEN.search(name)]
size = os.path.getsize(shared)
least, largest = map(int, sizes.split("-"))
print(f"{size:,} bytes: from {least:,} to {largest:,} are expected")
if size > largest:
    errors.append(f"{shared} has {size:,} bytes: find what has grown")
if size < least:
    errors.append(f"{shared} has {size:,} bytes: find what is missing")
sys.exit("\n".join(errors) or None)
