"""libsplit.h as a page: each declaration with its comment."""

import re
import textwrap

SECTIONS = [("Functions", lambda kind, name: kind == "function"),
            ("Structures", lambda kind, name: kind == "struct"),
            ("Operators", lambda kind, name: "_OP_" in name or name == "libsplit_op"),
            ("Status", lambda kind, name: "_STATUS_" in name or name == "libsplit_status"),
            ("Element types", lambda kind, name: "_DTYPE_" in name or name == "libsplit_dtype"),
            ("Everything else", lambda kind, name: True)]
COMMENT = re.compile(r"^/\*\*(.*?)\*/\n", re.S | re.M)


def page(header):
    left = list(declarations(header))
    lines = ["# C API", ""]
    lines += plain(re.search(r"\n \*\n(.*?)\*/", header, re.S)[1])
    for title, belongs in SECTIONS:
        chosen = [entry for entry in left if belongs(*entry[:2])]
        left = [entry for entry in left if entry not in chosen]
        lines += ["", f"## {title}", ""]
        for kind, name, code, comment in chosen:
            lines += [f"({name.lower().replace('_', '-')})=", f"### {name}", "", "```c",
                      code, "```", "", *plain(comment), ""]
    return "\n".join(lines) + "\n"


def declarations(header):
    """(kind, name, code, comment) of everything that has a comment of its own."""
    for match in COMMENT.finditer(header):
        rest = header[match.end():]
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


def plain(comment):
    """The comment without its stars. What is indented in it stays as it is, but for lists."""
    lines = [re.sub(r"^ ?\* ?", "", line.rstrip()) for line in comment.strip("\n").split("\n")]
    text = "\n".join(line for line in lines if not line.startswith("SPDX-"))
    text = re.sub(r"^# (\w+)\n", r"**\1.** ", text, flags=re.M)
    return INDENTED.sub(lambda block: _indented(block[0]), text).split("\n")


INDENTED = re.compile(r"^ {2,}.*\n(?:(?: {2,}.*)?\n)*(?: {2,}.*$)?", re.M)


def _indented(block):
    block = textwrap.dedent(block).strip("\n")
    return f"{block}\n\n" if block.startswith("- ") else f"```text\n{block}\n```\n\n"
