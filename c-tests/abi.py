"""The binary interface is the one that was promised.

What the header of a release declares, c-tests/abi/<release>/libsplit.h, today's header declares too, to the
letter: numbers, types, functions, and fields in their order. Only a structure that begins with its
size may have grown, at its end. The shared library exports the header's functions and nothing else,
and bears its SONAME.

usage: abi.py HEADER LIBRARY SONAME NM READELF
"""

import re
import subprocess
import sys
from pathlib import Path

header, library, soname, nm, readelf = sys.argv[1:]
releases = sorted((Path(__file__).parent / "abi").glob("*/libsplit.h"),
                  key=lambda path: [int(number) for number in path.parent.name.split(".")])
# Programs compare these, or they grow with their structures: they are no promise.
NO_PROMISE = r"LIBSPLIT_VERSION_\w+|LIBSPLIT_\w+_INIT|LIBSPLIT_API|LIBSPLIT_H"
errors = []


def declarations(path):
    """By name, what a header declares, without comments and line breaks."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\\\n", "", Path(path).read_text("utf-8"), flags=re.S)
    numbers = dict(re.findall(r"^ *# *define (\w+)(.*)", text, flags=re.M))
    found = {name: " ".join(value.split()) for name, value in numbers.items()
             if not re.fullmatch(NO_PROMISE, name)}
    code = re.sub(r"^ *#.*|LIBSPLIT_API|extern \"C\" {", "", text, flags=re.M)
    for declaration in re.findall(r"[^;{}]+(?:{[^}]*}[^;]*)?;", code):
        declaration = " ".join(declaration.split())
        name = re.search(r"\(\*(\w+)\)|(libsplit_\w+)\(|(\w+);$", declaration)
        found[next(filter(None, name.groups()))] = declaration
    return found


def functions(declared):
    return {name for name, declaration in declared.items()
            if re.search(rf"\b{name}\(", declaration)}


def is_kept(old, new):
    may_grow = re.match(r"typedef struct \w+ { size_t struct_size;", old)
    return new == old or may_grow and new.startswith(old[:old.index("}")])


def run(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


today = declarations(header)
for release in releases:
    number = release.parent.name
    version = re.findall(r"define LIBSPLIT_VERSION_\w+ (\d+)", release.read_text("utf-8"))
    if ".".join(version) != number:
        errors.append(f"c-tests/abi/{number} has a header of {version}")
    then = declarations(release)
    for name, old in then.items():
        if not is_kept(old, today.get(name, "")):
            errors.append(f"{number} has\n  {old}\nand today's header\n  {today.get(name)}")
    if not functions(then):
        errors.append(f"no function found in the header of {number}")
if not releases:
    errors.append("no header of a release found")

lines = run(nm, "-D", "-P", "--defined-only", library).splitlines()
exported = {line.split()[0] for line in lines}
if functions(today) - exported:
    errors.append(f"declared, not exported: {sorted(functions(today) - exported)}")
if exported - functions(today):
    errors.append(f"exported, not declared: {sorted(exported - functions(today))}")
if f"[{soname}]" not in run(readelf, "-d", library):
    errors.append(f"the SONAME is not {soname}")

print(f"{len(exported)} functions exported, {len(today)} declarations, {len(releases)} releases")
sys.exit("\n".join(errors) or None)
