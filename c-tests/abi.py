"""The binary interface is the one that was promised.

What the header of a release declares, c-tests/abi/<release>/libsplit.h, today's header declares too, to the
letter: numbers, types and functions. All fields of its structures are still where they were, on 64 and on 32
bits; only a structure that begins with its size may have grown, at its end. No structure ends with padding,
where a later field could not be told from what an old program left there. The shared library exports the
header's functions and nothing else, and bears its SONAME.

usage: abi.py HEADER LIBRARY SONAME NM READELF CC
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

header, library, soname, nm, readelf, cc = sys.argv[1:]
releases = sorted((Path(__file__).parent / "abi").glob("*/libsplit.h"),
                  key=lambda path: [int(number) for number in path.parent.name.split(".")])
# Programs compare these, or they grow with their structures: they are no promise.
NO_PROMISE = r"LIBSPLIT_VERSION\w*|LIBSPLIT_ONNX_OPSET|LIBSPLIT_\w+_INIT|LIBSPLIT_API|LIBSPLIT_CALL|LIBSPLIT_H"
# On some CPUs with 32 bits, an int64_t is aligned to 8 bytes.
KINDS = {"natively": [], "32 bits": ["-m32"], "32 bits, aligned": ["-m32", "-malign-double"]}
errors = []


def declarations(path):
    """By name, what a header declares, without comments and line breaks."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\\\n", "", Path(path).read_text("utf-8"), flags=re.S)
    numbers = dict(re.findall(r"^ *# *define (\w+)(.*)", text, flags=re.M))
    found = {name: " ".join(value.split()) for name, value in numbers.items()
             if not re.fullmatch(NO_PROMISE, name)}
    text = text.split("static inline")[0]
    code = re.sub(r"^ *#.*|LIBSPLIT_API|LIBSPLIT_CALL *|extern \"C\" {", "", text, flags=re.M)
    for declaration in re.findall(r"[^;{}]+(?:{[^}]*}[^;]*)?;", code):
        declaration = " ".join(declaration.split())
        name = re.search(r"\(\*(\w+)\)|(libsplit_\w+)\(|(\w+);$", declaration)
        found[next(filter(None, name.groups()))] = declaration
    return found


def functions(declared):
    return {name for name, declaration in declared.items()
            if re.search(rf"\b{name}\(", declaration)}


def structures(declared):
    """The fields of each structure, by its name."""
    bodies = {name: re.fullmatch(r"typedef struct \w+ {(.*)} \w+;", declaration)
              for name, declaration in declared.items()}
    return {name: re.findall(r"(\w+)(?:\[\d+\])?;", body[1]) for name, body in bodies.items() if body}


def layout(path, flags):
    """Where the fields of each structure begin and end, and what the structure ends with, as the compiler
    has them; None if it does not compile for that kind of CPU."""
    places = {}
    code = f'#include "{Path(path).resolve()}"\n'
    for structure, fields in structures(declarations(path)).items():
        for field in fields:
            begin = f"offsetof({structure}, {field})"
            places[f"{structure}.{field}"] = (begin, f"{begin} + sizeof((({structure} *)0)->{field})")
        places[structure] = ("0", f"sizeof({structure})")
    # The compiler tells sizes of arrays, so the program need not be run.
    for number, ends in enumerate(places.values()):
        code += "".join(f"char at{number}{end}[1 + {place}];\n" for end, place in zip("be", ends))
    with tempfile.TemporaryDirectory() as directory:
        obj = Path(directory, "layout.o")
        compiled = subprocess.run([cc, *flags, "-ffreestanding", "-fno-common", "-xc", "-", "-c", "-o", obj],
                                  input=code, text=True, capture_output=True)
        if compiled.returncode:
            return None
        sizes = {line.split()[0]: int(line.split()[3], 16) - 1
                 for line in run(nm, "-P", obj).splitlines()}
    return {name: (sizes[f"at{number}b"], sizes[f"at{number}e"]) for number, name in enumerate(places)}


def is_kept(old, new):
    may_grow = re.match(r"typedef struct \w+ { size_t struct_size;", old)
    return new == old or may_grow and new.startswith(old[:old.index("}")])


def compare_layouts(number, then, now):
    for name, place in then.items():
        # Whether a structure may grow, its declaration says.
        if "." in name and now.get(name) != place:
            errors.append(f"{name} was at {place} in {number}, and is at {now.get(name)}")


def refuse_padding(kind, now):
    for structure in (name for name in now if "." not in name):
        end = max(place[1] for name, place in now.items() if name.startswith(structure + "."))
        if end != now[structure][1]:
            errors.append(f"{kind}: {structure} has {now[structure][1]} bytes, and its fields end at {end}")


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

seen = 0
for kind, flags in KINDS.items():
    now = layout(header, flags)
    if now is None:
        print(f"{kind}: {cc} does not compile for them, so layouts are not compared")
        continue
    seen += 1
    sizes = ", ".join(f"{name} {place[1]}" for name, place in now.items() if "." not in name)
    print(f"{kind}: {sizes}")
    refuse_padding(kind, now)
    for release in releases:
        compare_layouts(f"{release.parent.name} ({kind})", layout(release, flags), now)
if not seen:
    errors.append(f"{cc} compiles the header for no kind of CPU")

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
