"""The README's C programs compile as they stand and print what the README says.

usage: readme.py README INCLUDE STATIC_LIBRARY CC WORK
"""

import re
import subprocess
import sys
from pathlib import Path

readme, include, static, cc, work = sys.argv[1:]
text = Path(readme).read_text("utf-8")
work = Path(work)
work.mkdir(exist_ok=True)


def blocks(language):
    """All blocks of this language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.S | re.M)


programs, outputs = blocks("c"), blocks("text")
assert len(programs) == len(outputs) >= 2, "each program is followed by what it prints"
for program, expected in zip(programs, outputs):
    (work / "readme.c").write_text(program)
    subprocess.run([cc, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", include,
                    "-o", work / "readme", work / "readme.c", static], check=True)
    output = subprocess.run([work / "readme"], check=True, text=True, stdout=subprocess.PIPE).stdout
    assert output == expected, output
