"""Refusals by XLA of programs with ops that it does not know."""

from __future__ import annotations

import pytest

from shardy_py.errors import Diagnostic, UnsupportedError, WorkerError
from shardy_py.ir import Builder, Program, tensor
from shardy_py.jax.xla_ops import foreign_ops_named


def _program(*names: str) -> Program:
    builder = Builder()
    with builder.function("main", [tensor(8)]) as (x,):
        for name in names:
            x = builder.op(name, [x], [tensor(8)])
        builder.return_(x)
    return builder.program


@pytest.mark.parametrize("class_", [UnsupportedError, WorkerError])
def test_a_refusal_names_the_ops_of_other_dialects(class_: type[UnsupportedError | WorkerError]) -> None:
    """Whichever way XLA refuses, the error says which ops it does not know, at most five of them."""
    program = _program("stablehlo.exponential", *(f"toy.f{number}" for number in range(7)), "toy.f0")
    with pytest.raises(UnsupportedError) as caught, foreign_ops_named(program):
        raise class_(Diagnostic("refused", "no"))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "no-xla-ops"
    assert diagnostic.message.endswith("dialects, toy.f0, toy.f1, toy.f2, toy.f3, toy.f4 and 2 more")
    assert "run_sharded" in diagnostic.hint


def test_other_refusals_stay_as_they_are() -> None:
    """A program with ops of XLA's dialects only is refused for another reason."""
    with pytest.raises(WorkerError) as caught, foreign_ops_named(_program("stablehlo.exponential")):
        raise WorkerError(Diagnostic("refused", "no"))
    assert caught.value.diagnostics[0].code == "refused"
