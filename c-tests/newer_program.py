"""A program that was built with the next release runs with today's library where it calls nothing
new, and else is refused: as it starts, or at that call where it binds lazily, by the function's name.

usage: newer_program.py LIBRARY STATIC_LIBRARY SONAME CC WORK [EMULATOR...]
"""

import os
import subprocess
import sys
from pathlib import Path

library, static, soname, cc, work, *emulator = sys.argv[1:]
source = Path(__file__).resolve().parent
work = Path(work)
work.mkdir(exist_ok=True)
today = Path(library).resolve().parent


def build(output, *arguments):
    subprocess.run([cc, "-I", source.parent / "include", "-o", work / output, *arguments], check=True)


def run(program, libraries):
    return subprocess.run([*emulator, work / program], env={**os.environ, "LD_LIBRARY_PATH": str(libraries)},
                          text=True, capture_output=True)


# The next release: today's, and one function more.
(work / "next.c").write_text("int libsplit_next(void);\nint libsplit_next(void) { return 7; }\n")
(work / "newer.c").write_text("""#include <stdio.h>
int libsplit_next(void);
int main(void) {
    puts("started");
    fflush(stdout);
    return libsplit_next() != 7;
}
""")
build(soname, "-shared", work / "next.c", f"-Wl,-soname,{soname}",
      "-Wl,--whole-archive", static, "-Wl,--no-whole-archive")
build("same", source / "consumer" / "main.c", work / soname)
build("now", work / "newer.c", "-Wl,-z,now", work / soname)
build("lazy", work / "newer.c", "-Wl,-z,lazy", work / soname)

for libraries in work, today:
    same = run("same", libraries)
    assert (same.returncode, same.stderr) == (0, ""), same
for program, before in ("now", ""), ("lazy", "started\n"):
    newer = run(program, work)
    assert (newer.returncode, newer.stdout) == (0, "started\n"), newer
    newer = run(program, today)
    assert newer.returncode != 0 and newer.stdout == before, newer
    assert "undefined symbol: libsplit_next" in newer.stderr, newer
    print(newer.stderr, end="")
