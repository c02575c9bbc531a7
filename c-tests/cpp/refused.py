"""Checks that a compiler refuses every case of refused.cpp, and says why in few lines.

    refused.py COMPILER ARGUMENT...

The compiler runs once on all cases; its messages are assigned to cases by the lines that they name. Without
the cases, the file must compile.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).with_name("refused.cpp")
MOST_LINES = 20
CASE = re.compile(r"^ *// case: (.*)$", re.MULTILINE)
# Where a compiler starts on another error.
BEGIN = re.compile(r": error: |: In (?:\w+ )?(?:function|constructor|instantiation|substitution) ")


def compiled(command, source):
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory, SOURCE.name)
        file.write_text(source)
        run = subprocess.run([*command, "-c", file, "-o", file.with_suffix(".o")], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return run.returncode, run.stdout


def errors(said):
    """What the compiler says, error by error."""
    found = [[]]
    for line in said.splitlines():
        if BEGIN.search(line) and any(": error: " in earlier for earlier in found[-1]):
            found.append([])
        found[-1].append(line)
    return found


def main():
    compiler, *arguments = sys.argv[1:]
    if not shutil.which(compiler):
        print(f"skipped: no {compiler} on this machine")
        sys.exit(77)
    every = "-fmax-errors=0" if "g++" in compiler and "clang" not in compiler else "-ferror-limit=0"
    command = [compiler, *arguments, every, "-fno-diagnostics-color", "-Wno-unused"]
    source = SOURCE.read_text()
    status, said = compiled(command, source[:CASE.search(source).start()] + "}\n")
    if status != 0:
        sys.exit(f"error: what comes before the cases does not compile:\n{said}")
    _, said = compiled(command, source)
    found = errors(said)
    failed, cases = 0, list(CASE.finditer(source))
    for case in cases:
        # The statement is in the line after the words.
        line = source.count("\n", 0, case.end()) + 2
        of_case = [lines for lines in found
                   if any(f"{SOURCE.name}:{line}:" in text for text in lines)]
        text = "\n".join("\n".join(lines) for lines in of_case)
        length = sum(map(len, of_case))
        if not of_case or case[1] not in text or length > MOST_LINES:
            failed += 1
            why = f"{length} lines, to say '{case[1]}'" if of_case else "it compiles"
            print(f"{source.splitlines()[line - 1].strip()}: {why}\n{text}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
