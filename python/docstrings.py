"""Writes the module's docstrings into its stub, where editors look for them.

    docstrings.py           writes them
    docstrings.py --check   fails if the stub has others
"""

import ast
import inspect
import pathlib
import sys
import textwrap
from typing import Any

import libsplit

STUB = pathlib.Path(__file__).parent / "source/libsplit/_libsplit.pyi"
Definition = ast.FunctionDef | ast.ClassDef


def documented(stub: str) -> str:
    """Returns the stub with the docstrings of the module."""
    lines = stub.splitlines()
    found = list(definitions(ast.parse(stub), libsplit))
    for node, docstring in reversed(found):
        lines[node.lineno - 1 : node.end_lineno] = [
            *header(lines, node),
            *textwrap.indent(docstring, " " * (node.col_offset + 4)).splitlines(),
            *members(lines, node),
        ]
    return "\n".join(lines) + "\n"


def definitions(tree: ast.Module | ast.ClassDef, owner: Any) -> Any:
    """Yields each definition of the stub that users see, in order, with the source of its docstring."""
    seen = set()
    for node in tree.body:
        if not isinstance(node, Definition) or not hasattr(owner, node.name):
            continue
        item = getattr(owner, node.name)
        is_first, text = node.name not in seen, inspect.getdoc(item)
        seen.add(node.name)
        if is_first and text and not node.name.startswith("__"):
            yield node, f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'
        if isinstance(node, ast.ClassDef):
            yield from definitions(node, item)


def header(lines: list[str], node: Definition) -> list[str]:
    """Returns the lines up to the colon before the body."""
    head = lines[node.lineno - 1 : node.body[0].lineno]
    if isinstance(node, ast.FunctionDef) and is_docstring(node.body[0]):
        return head[:-1]
    if isinstance(node, ast.FunctionDef):
        return [*head[:-1], head[-1].removesuffix(" ...")]
    return head[:1]


def members(lines: list[str], node: Definition) -> list[str]:
    """Returns the lines of a class's body, without its docstring."""
    if isinstance(node, ast.FunctionDef):
        return []
    first = node.body[int(is_docstring(node.body[0]))]
    decorators = getattr(first, "decorator_list", [])
    return lines[min([first.lineno, *(each.lineno for each in decorators)]) - 1 : node.end_lineno]


def is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(
        statement.value.value, str
    )


if __name__ == "__main__":
    before = STUB.read_text()
    after = documented(before)
    if "--check" not in sys.argv:
        STUB.write_text(after)
    elif before != after:
        sys.exit("the stub has other docstrings than the module: run python/docstrings.py")
