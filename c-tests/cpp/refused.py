"""Checks that a compiler refuses every case of refused.cpp, and says why in few lines.

    refused.py COMPILER ARGUMENT...

The compiler 'zig' is that of the PyPI package ziglang. Everything before the cases has to compile.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).with_name("refused.cpp")
MOST_LINES = 20


def compiled(command, source):
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory, "refused.cpp")
        file.write_text(source)
        run = subprocess.run([*command, "-c", file, "-o", file.with_suffix(".o")], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return run.returncode, run.stdout


def main():
    compiler, *arguments = sys.argv[1:]
    if compiler != "zig" and not shutil.which(compiler):
        sys.exit(f"error: no {compiler}")
    command = [sys.executable, "-m", "ziglang", "c++"] if compiler == "zig" else [compiler]
    command += [*arguments, "-fno-diagnostics-color", "-Wno-unused"]
    head, *cases = re.split(r"^ *// case: ", SOURCE.read_text(), flags=re.MULTILINE)
    cases[-1] = cases[-1][:cases[-1].rindex("}")]
    failed = 0
    status, said = compiled(command, head + "}\n")
    if status != 0:
        sys.exit(f"error: what comes before the cases does not compile:\n{said}")
    for case in cases:
        words, code = case.split("\n", 1)
        status, said = compiled(command, head + code + "}\n")
        lines = said.count("\n")
        if status == 0 or words not in said or lines > MOST_LINES:
            failed += 1
            why = "it compiles" if status == 0 else f"{lines} lines, to say '{words}'"
            print(f"{code.strip()}: {why}\n{said}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
