"""The examples in the docstrings and the README run, and print what they say."""

import doctest
import pathlib

import pytest

import libsplit

README = pathlib.Path(__file__).parents[1] / "README.md"


def run(text: str, name: str) -> None:
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("name", libsplit.__all__)
def test_docstring(name: str) -> None:
    item = getattr(libsplit, name)
    assert item.__doc__
    if name != "__version__":
        assert ">>>" in item.__doc__
        run(item.__doc__, name)


def test_readme() -> None:
    blocks = README.read_text().split("```python\n")[1:]
    examples = [block.split("```")[0] for block in blocks]
    assert all(">>>" in example for example in examples)
    run("\n".join(examples), "README.md")
