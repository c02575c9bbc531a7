"""The README's C program compiles as it stands and prints what the README says.

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


def block(language):
    """The first block of this language."""
    return re.search(rf"^```{language}\n(.*?)^```$", text, flags=re.S | re.M)[1]


(work / "readme.c").write_text(block("c"))
subprocess.run([cc, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", include,
                "-o", work / "readme", work / "readme.c", static], check=True)
output = subprocess.run([work / "readme"], check=True, text=True, stdout=subprocess.PIPE).stdout
assert output == block("text"), output
