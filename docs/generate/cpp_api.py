"""libsplit.hpp as a page: its functions and classes with their public members and comments."""

import re

SECTION = re.compile(r"^// -{20,}\n// (.*)\n", re.M)
DETAIL = re.compile(r"^namespace detail \{.*?^\} // namespace detail\n", re.S | re.M)
DIRECTIVE = re.compile(r"^#.*\n", re.M)
CLASS = re.compile(r"^(?:class|struct|enum class|using) (?:\[\[\w+\]\] )?(\w+)", re.M)
TYPES = ("class", "struct")
COMMENTED = re.compile(r"^( *)///(?!<)(.*\n(?:\1///.*\n)*)", re.M)


def page(header):
    comment = re.search(r"SPDX.*\n//\n((?://.*\n)+)", header)[1]
    lines = ["# C++ API", "", *intro(comment)]
    body = DIRECTIVE.sub("", DETAIL.sub("", header[header.index("namespace libsplit {") :]))
    sections = SECTION.split(body)[1:]
    # What everybody uses comes first; in the header it must come last.
    for title, text in reversed(list(zip(sections[::2], sections[1::2]))):
        lines += ["", f"## {title}", ""]
        headings = set()
        for indent, code, comment in documented(text):
            named = CLASS.search(code)
            if not indent and named and named[1] not in headings:
                headings.add(named[1])
                lines += [f"### {named[1]}", ""]
            lines += ["```cpp", code, "```", "", *comment, ""]
    return "\n".join(lines) + "\n"


def intro(comment):
    text = re.sub(r"^// ?", "", comment.strip(), flags=re.M)
    return re.sub(
        r"^ {4}.*(?:\n(?: {4}.*|(?=\n {4})))*",
        lambda code: "```cpp\n" + _dedent(code[0]) + "\n```",
        text,
        flags=re.M,
    ).split("\n")


def _dedent(code):
    return re.sub(r"^ {4}", "", code, flags=re.M)


def documented(text):
    """Yields (indentation, declaration, lines of the comment) of what is public and has a comment."""
    hidden = False
    position = 0
    for match in COMMENTED.finditer(text):
        for mark in re.finditer(
            r"^  (private|public):$|^\};$", text[position : match.start()], re.M
        ):
            hidden = mark[1] == "private"
        position = match.end()
        code = declaration(text[match.end() :], match[1])
        if not hidden and "= delete" not in code:
            comment = re.sub(r"^ *///? ?", "", match[2], flags=re.M).strip()
            yield match[1], code, in_markdown(comment)


def in_markdown(comment):
    """Indented lines are code."""
    parts = re.split(r"((?:^ {4}.*\n?)+)", comment, flags=re.M)
    return "".join(
        f"```cpp\n{_dedent(part).rstrip()}\n```\n" if part.startswith("    ") else part
        for part in parts
    ).split("\n")


def declaration(code, indent):
    """Returns the code up to the body, without initializers and template parameters that only constrain."""
    code = re.sub(rf"^{indent}", "", code, flags=re.M)
    if code.startswith("enum"):
        return re.sub(r" += LIBSPLIT_\w+", "", code[: code.index("};") + 2])
    if code.startswith("template"):
        close = _closing(code, code.index("<"), "<>")
        parameters = [
            part
            for part in _split(code[code.index("<") + 1 : close])
            if not part.startswith("class =") and "Enable" not in part
        ]
        template = f"template <{', '.join(parameters)}>\n" if parameters else ""
        return template + declaration(code[close + 1 :].lstrip(), "")
    depth = 0
    for at, mark in enumerate(code):
        depth += (mark in "(") - (mark in ")")
        is_default = code[at : at + 3] in ("{},", "{})")  # a parameter's default
        is_initializer = mark == ":" and code[at - 1] == " " and not code.startswith(TYPES)
        if depth == 0 and (mark in ";{" or is_initializer) and not is_default:
            return re.sub(r"\s+: .*|\s+$", "", code[:at]) + ";"
    raise SystemExit(f"no declaration: {code[:200]}")


def _closing(code, at, pair):
    depth = 0
    for index in range(at, len(code)):
        depth += (code[index] == pair[0]) - (code[index] == pair[1] and code[index - 1] != "-")
        if depth == 0:
            return index
    raise SystemExit(f"not closed: {code[at:at + 200]}")


def _split(parameters):
    """Splits at commas outside brackets."""
    parts, depth = [""], 0
    for mark in parameters:
        depth += (mark in "<(") - (mark in ">)")
        if mark == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += mark
    return [re.sub(r"\s+", " ", part).strip() for part in parts]
