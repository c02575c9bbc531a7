"""What docs/autograd.md says about the frameworks that are installed."""

import contextlib
import importlib
import importlib.util
import io
import pathlib
import re
from typing import Any

import pytest

import libsplit

PAGE = pathlib.Path(__file__).parents[2] / "docs/autograd.md"


def examples(language: str) -> list[tuple[str, str]]:
    """Returns each block of code, and what it prints."""
    found = re.findall(rf"```{language}\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [(code, printed) for code, printed in found]


def halves_sum(x: Any) -> Any:
    left, right = libsplit.split(x, 2)
    return left + right


def run(code: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, PAGE, "exec"), {"__name__": "example"})
    return printed.getvalue()


# `make test` does not install the large libraries.
if importlib.util.find_spec("jax"):
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")

    def test_the_example_of_jax() -> None:
        ((code, printed),) = examples("python")
        assert run(code) == printed

    def test_jax_refuses_what_it_traces() -> None:
        for traced in jax.jit(halves_sum), jax.grad(lambda x: halves_sum(x).sum()):
            with pytest.raises(TypeError, match="racer"):
                traced(jnp.arange(6.0))
        with pytest.raises(TypeError, match="racer"):
            jax.vmap(halves_sum)(jnp.ones((3, 6)))


if importlib.util.find_spec("torch"):
    torch: Any = importlib.import_module("torch")

    def test_the_example_of_torch() -> None:
        ((code, printed),) = examples("py")
        assert run(code) == printed
        split = {"__name__": "example"}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, split)
        x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
        apply: Any = split["Split"]
        assert torch.autograd.gradcheck(lambda x: apply.apply(x, [2, 4], 1), (x,))

    def test_torch_refuses_what_has_a_gradient() -> None:
        with pytest.raises(BufferError, match="detach"):
            libsplit.split(torch.ones(6, requires_grad=True), 2)
        assert not libsplit.split(torch.ones(6, requires_grad=True).detach(), 2)[0].requires_grad
        with pytest.raises(BufferError):
            libsplit.split(torch.ones(6, device="meta"), 2)

    def test_torch_compile_runs_it() -> None:
        compiled = torch.compile(halves_sum, backend="eager")
        for _ in range(2):
            assert compiled(torch.arange(6.0)).tolist() == [3, 5, 7]
            assert compiled(torch.ones(6)).tolist() == [2, 2, 2]
