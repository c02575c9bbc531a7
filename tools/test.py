"""Runs CTest in a build directory, and lists what passed, what was skipped, and what failed, with the last
lines of what failed: a long log may be read from its end only.

usage: test.py BUILD [argument of ctest...]
"""

import os
import resource
import subprocess
import sys
import textwrap
import time
import xml.etree.ElementTree
from pathlib import Path

build, *arguments = sys.argv[1:]
junit = Path(build, "tests.xml").resolve()
junit.unlink(missing_ok=True)
log = Path(build, "Testing/Temporary/LastTest.log")
# Of each test that has failed.
LAST_LINES = 30


def printed(test):
    """The lines that a test printed."""
    return [line.rstrip() for line in (test.findtext("system-out") or "").split("\n") if line.strip()]


def reason(test):
    """What a skipped test printed last."""
    said = printed(test)
    return said[-1].strip().removeprefix("skipped: ") if said else "not for this machine"


begin = time.monotonic()
subprocess.run(["ctest", "--test-dir", build, "--parallel", str(os.cpu_count()), "--output-on-failure",
                "--output-junit", junit, *arguments], check=False)
if not junit.exists():
    sys.exit("error: CTest ran no test")
passed, skipped, failed = [], [], {}
for test in xml.etree.ElementTree.parse(junit).iter("testcase"):
    name, mark = test.get("name"), test.find("skipped")
    if test.get("status") == "run":
        passed.append(name)
    elif mark is not None and mark.get("message", "").startswith("SKIP_"):
        skipped.append(f"{name}: {reason(test)}")
    else:  # a test without its program, or whose setup has failed, is no pass
        failed[name] = printed(test)[-LAST_LINES:]

print("\n==> passed")
print(textwrap.fill("  ".join(sorted(passed)), 100, initial_indent="    ", subsequent_indent="    ",
                    break_on_hyphens=False))
if skipped:
    print("==> skipped", *sorted(skipped), sep="\n    ")
if failed:
    for name, lines in sorted(failed.items()):
        print(f"==> the last lines of {name}", *lines, sep="\n    ")
    print("==> failed", *sorted(failed), f"All that they printed: {log}", sep="\n    ")
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"\n{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped in {time.monotonic() - begin:.0f} s, "
      f"{used.ru_utime + used.ru_stime:.0f} s of CPU time")
sys.exit(bool(failed))
