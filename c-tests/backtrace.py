"""A bad pointer that faults inside libsplit gives gdb the frames of the callers, whichever loop it is in; and names of
libsplit's own functions, and their lines, if the separate debug file is there.

usage: backtrace.py SHARED STATIC DEBUG_DIRECTORY CC WORK
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

shared, static, debug, cc, work = sys.argv[1:]
source = Path(__file__).resolve().parent
work = Path(work)
work.mkdir(exist_ok=True)
CALLERS = ["halves", "called_by_main", "main"]
CASES = ["small", "output", "rows", "arranged", "transposed", "bits", "task"]

if shutil.which("gdb") is None:
    print("skipped: no gdb on this machine")
    sys.exit(77)


def build(name, *libraries):
    subprocess.run([cc, "-g", "-O0", "-I", source.parent / "include", "-o", work / name, source / "backtrace.c",
                    *libraries], check=True)
    return work / name


def frames(program, case, directory):
    """Returns gdb's frames as functions and files, the innermost first."""
    done = subprocess.run(["gdb", "-nx", "-batch", "-iex", f"set debug-file-directory {directory}",
                           "-ex", "set debuginfod enabled off", "-ex", "run", "-ex", "backtrace",
                           "--args", program, case], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if re.search("ptrace|Could not trace", done.stdout):
        print("skipped: gdb may not trace programs here")
        sys.exit(77)
    found = re.findall(r"^#\d+ +(?:0x\w+ in )?(.+?) \(.*?\)(?: (?:at|from) (\S+))?$", done.stdout, re.MULTILINE)
    assert "SIGSEGV" in done.stdout and found, done.stdout
    print(f"{case}:", " < ".join(function for function, _ in found))
    return found


def check(program, nothing):
    for case in CASES:
        without = [function for function, _ in frames(program, case, nothing)]
        assert without[-3:] == CALLERS, f"{case}: the callers are lost: {without}"
        if case == "task":
            assert "in_this_thread" in without, f"{case}: the pool is lost: {without}"


nothing = work / "nothing"
nothing.mkdir(exist_ok=True)
print("==> the shared library")
with_shared = build("with_shared", shared, f"-Wl,-rpath,{Path(shared).parent}")
check(with_shared, nothing)
print("==> the static library")
check(build("with_static", static), nothing)
print("==> the shared library and its debug file")
for case in CASES:
    found = frames(with_shared, case, debug)
    assert [function for function, _ in found[-3:]] == CALLERS, found
    assert any(re.search(r"src/copy/\w+[.]rs:\d+$", line) for _, line in found), found
    assert "??" not in [function for function, _ in found], found
