"""The shared library exports what the header declares, no more and no less, under its SONAME.

usage: exports.py HEADER LIBRARY SONAME NM READELF
"""

import re
import subprocess
import sys

header, library, soname, nm, readelf = sys.argv[1:]


def run(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


with open(header, encoding="utf-8") as file:
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read(), flags=re.S)
declared = set(re.findall(r"\b(libsplit_\w+)\(", code))
exported = {line.split()[0] for line in run(nm, "-D", "-P", "--defined-only", library).splitlines()}

errors = []
if not declared:
    errors.append("no function found in the header")
if declared - exported:
    errors.append(f"declared, not exported: {sorted(declared - exported)}")
if exported - declared:
    errors.append(f"exported, not declared: {sorted(exported - declared)}")
if f"[{soname}]" not in run(readelf, "-d", library):
    errors.append(f"the SONAME is not {soname}")

print(f"{len(exported)} functions exported, {len(declared)} declared")
sys.exit("\n".join(errors) or None)
