"""Pages of the C headers: each declaration with its comment."""

import re
import textwrap

SECTIONS = [
    ("Structures", lambda kind, name: kind == "struct"),
    ("Functions", lambda kind, name: kind == "function"),
    ("Operators", lambda kind, name: "_OP_" in name or name == "libsplit_op"),
    ("Status", lambda kind, name: "_STATUS_" in name or name == "libsplit_status"),
    ("Element types", lambda kind, name: "_DTYPE_" in name or name == "libsplit_dtype"),
    ("Other types and constants", lambda kind, name: True),
]
COMMENT = re.compile(r"^/\*\*(.*?)\*/\n", re.S | re.M)


def pages(c_header, dlpack_header):
    """The texts of the pages of libsplit.h and libsplit_dlpack.h."""
    c_header = without_calling_convention(c_header)
    c, dlpack = list(declarations(c_header)), list(declarations(dlpack_header))
    known = {name for _, name, _, _ in c + dlpack}
    intro = re.search(r"\n \*\n(.*?)(?: \*\n \* This file is generated.*?)?\*/", c_header, re.S)[1]
    dlpack_intro = (
        "`libsplit_dlpack.h`, for C99 and later, turns DLPack tensors into libsplit's, and pieces "
        "into DLPack tensors. It allocates nothing. See the recipe [DLPack](../recipes/dlpack.md)."
    )
    return (
        page("C API", plain(intro, known), c, known),
        page("DLPack API", [dlpack_intro], dlpack, known),
    )


def without_calling_convention(header):
    """Leaves out what matters only on Windows, also in the indent of the lines that follow."""
    word = "LIBSPLIT_CALL "
    return re.sub(rf"^ {{{len(word)}}}(?= {{16}})", "", header.replace(word, ""), flags=re.M)


def page(title, intro, left, known):
    lines = ["---", "tocdepth: 3", "---", "", f"# {title}", "", *intro]
    functions = [entry for entry in left if entry[0] == "function"]
    lines += ["", "| Function | Purpose |", "| --- | --- |"]
    lines += [
        f"| {link(name)} | {summary(comment, name, known)} |" for _, name, _, comment in functions
    ]
    for section, belongs in SECTIONS:
        chosen = [entry for entry in left if belongs(*entry[:2])]
        left = [entry for entry in left if entry not in chosen]
        if chosen:
            lines += ["", f"## {section}", ""]
        level = "###"
        for kind, name, code, comment in chosen:
            # Constants belong to the type before them, and are too many for the table of contents.
            level = "####" if kind == "constant" and level != "###" else "###"
            lines += [
                f"({anchor(name)})=",
                f"{level} {name}",
                "",
                "```c",
                code,
                "```",
                "",
                *plain(comment, known),
                "",
            ]
            level = "####"
    return "\n".join(lines) + "\n"


def anchor(name):
    """Returns a target that no other name has: Sphinx takes libsplit_version for LIBSPLIT_VERSION."""
    kind = "-constant" if name.isupper() else ""
    return name.lower().replace("_", "-") + kind


def link(name, brackets=""):
    return f"[`{name}{brackets}`](#{anchor(name)})"


def summary(comment, name, known):
    """The first sentence."""
    text = " ".join(plain(comment, known - {name})).strip().removeprefix(f"{name}() ")
    first = re.match(r".*?(?<!\be\.g)[.:](?=\s|$)|.*", text)[0].rstrip(":.")
    return f"{first[0].upper()}{first[1:]}."


def declarations(header):
    """Yields (kind, name, code, comment) of everything that has its own comment."""
    for match in COMMENT.finditer(header):
        rest = header[match.end() :]
        if found := re.match(r"typedef struct (\w+) \{.*?^\} \1;", rest, re.S | re.M):
            yield "struct", found[1], found[0], match[1]
        elif found := re.match(r"typedef [^;]*?\(\*(\w+)\)[^;]*;", rest):
            yield "type", found[1], found[0], match[1]
        elif found := re.match(r"typedef [^;]* (\w+);", rest):
            yield "type", found[1], found[0], match[1]
        elif found := re.match(r"#define (\w+)(?:.*\\\n)*.*", rest):
            yield "constant", found[1], found[0], match[1]
        elif found := re.match(r"LIBSPLIT_API\s[^;(]*?(\w+)\([^;]*;", rest):
            yield "function", found[1], found[0].replace("LIBSPLIT_API", "").strip(), match[1]
        elif found := re.match(r"static inline [^(]*?(\w+)\([^)]*\)", rest):
            yield "function", found[1], found[0] + ";", match[1]
        else:
            raise SystemExit(f"no declaration after the comment: {match[1]}")


def plain(comment, known=frozenset()):
    """Returns the comment as lines of Markdown: without stars, 'x' as code, known names as links. Indented
    text stays as it is, except for lists."""
    lines = [re.sub(r"^ ?\* ?", "", line.rstrip()) for line in comment.strip("\n").split("\n")]
    text = "\n".join(line for line in lines if not line.startswith("SPDX-"))
    text = re.sub(r"^# (\w+)\n", r"**\1.** ", text, flags=re.M)
    parts, end = [], 0
    for block in INDENTED.finditer(text):
        parts += [prose(text[end : block.start()], known), _indented(block[0], known)]
        end = block.end()
    return "".join([*parts, prose(text[end:], known)]).split("\n")


INDENTED = re.compile(r"^ {2,}.*\n(?:(?: {2,}.*)?\n)*(?: {2,}.*$)?", re.M)
QUOTED = re.compile(r"(?<![\w'`])'([^'\n]{1,70})'(?![\w'])")
NAME = re.compile(r"`[^`]*`|\b(libsplit_\w+|LIBSPLIT_\w+)(\(\))?")
PAGES = {
    "docs/realtime.md": "[Real-time threads](../realtime.md)",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
}


def prose(text, known):
    text = QUOTED.sub(r"`\1`", text)
    for file, page_link in PAGES.items():
        text = text.replace(file, page_link)
    return NAME.sub(
        lambda name: link(name[1], name[2] or "") if name[1] in known else name[0], text
    )


def _indented(block, known):
    block = textwrap.dedent(block).strip("\n")
    return f"{prose(block, known)}\n\n" if block.startswith("- ") else f"```text\n{block}\n```\n\n"
