"""The Python package as a page: signatures from its stub, docstrings from its Rust sources."""

import ast
import re

from generate.api import QUOTED

# A doc comment, its attributes, and the item that they belong to.
ITEM = re.compile(r"((?:^ *///.*\n)+)((?: *#\[[^\]]*\]\n)*) *(?:pub )?(fn|struct) (\w+)", re.M)


def page(package, stub, sources):
    """Returns the page of everything that __init__.py, 'package', makes public."""
    docs = {}
    for source in sources:
        docs |= docstrings(source)
    lines = [
        "# Python API",
        "",
        "`import libsplit`. Install it with `pip install ./python numpy` in a clone of the "
        "repository. See the "
        "recipe [Python](../recipes/python.md) for examples.",
        "",
        "## Functions",
        "",
    ]
    tree = ast.parse(stub).body
    public = next(
        ast.literal_eval(node.value)
        for node in ast.parse(package).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"
    )
    for node in functions(tree):
        if node.name in public:
            lines += entry(node, node.name, docs)
    for node in tree:
        if isinstance(node, ast.ClassDef) and node.name in public:
            lines += [f"## {node.name}", "", *text(docs.get(node.name, "")), ""]
            for method in functions(node.body):
                lines += entry(method, f"{node.name}.{method.name}", docs)
    return "\n".join(lines) + "\n"


def functions(body):
    """Returns the functions, and of those with several signatures the first, which has the docstring."""
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, node)
    return found.values()


def entry(node, name, docs):
    owner, _, method = name.rpartition(".")
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    if method == "__new__":
        shown, arguments = owner, signature(node.args, skip=1)
    elif method.startswith("__"):
        return []
    elif "property" in decorators:
        return [
            "```python",
            f"{name}: {ast.unparse(node.returns)}",
            "```",
            "",
            *text(ast.get_docstring(node) or docs.get(name, "")),
            "",
        ]
    else:
        shown, arguments = name, signature(
            node.args, skip=owner != "" and "staticmethod" not in decorators
        )
    heading = [] if owner else [f"### {name}", ""]
    return [
        *heading,
        "```python",
        f"{shown}({arguments})",
        "```",
        "",
        *text(ast.get_docstring(node) or docs.get(name, "")),
        "",
    ]


def signature(arguments, skip):
    """The names and defaults, without types."""
    arguments.args = arguments.args[int(skip) :]
    for argument in [*arguments.args, *arguments.kwonlyargs]:
        argument.annotation = None
    return ast.unparse(arguments)


def docstrings(source):
    """Returns the docstrings of what a Rust file exports to Python, by name."""
    found = {}
    owners = [
        (match.start(), match[1]) for match in re.finditer(r"#\[pymethods\]\nimpl (\w+)", source)
    ]
    for match in ITEM.finditer(source):
        owner = next((name for start, name in reversed(owners) if start < match.start()), None)
        if match[3] == "struct" and "#[pyclass" in match[2] or "#[pyfunction" in match[2]:
            name = match[4]
        elif owner and match[1].startswith("    ///"):
            name = f"{owner}.{match[4]}"
        else:
            continue
        found.setdefault(name, re.sub(r"^ */// ?", "", match[1], flags=re.M))
    return found


def text(docstring):
    """Converts a docstring to Markdown: examples, and text in quotes, become code."""
    parts = re.split(r"^(>>> .*(?:\n.+)*)", docstring.strip(), flags=re.M)
    parts[::2] = [QUOTED.sub(r"`\1`", part.replace("``", "`")) for part in parts[::2]]
    parts[1::2] = [f"```pycon\n{part}\n```" for part in parts[1::2]]
    return "".join(parts).split("\n")
