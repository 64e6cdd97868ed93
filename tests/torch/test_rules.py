"""Each rule of an operator, checked by running it on shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from attrs import evolve

import shardy_py as sdy
from shardy_py.torch.parallel import explicit_program, make_local_torch_program
from tests.torch.cases import CASES

pytestmark = pytest.mark.torch


class _Model(torch.nn.Module):
    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self.call(*tensors)


def _simulate(exported: Any, tensors: tuple[torch.Tensor, ...], argument: int, dim: int, **options: Any) -> list[Any]:
    spec = [None] * tensors[argument].dim()
    spec[dim] = "x"
    result = sdy.propagate(exported, {"x": 2}, in_shardings={f"tensors_{argument}": tuple(spec)}, **options)
    # Each op runs as propagated: where fewer bytes pass, an op may run whole, and its rule is not tried.
    explicit = explicit_program(result.program, result.registry)
    local = make_local_torch_program(explicit, result.registry, optimize=False)
    state = {item.name: exported.constants[item.name] for item in local.origin.arguments if item.kind == "constant"}
    inputs = iter(tensors)
    arguments = [next(inputs) if item.kind == "input" else state[item.name] for item in local.origin.arguments]
    outputs = local.simulate(*arguments)
    return [outputs[output.result] for output in local.origin.outputs if output.result is not None]


def _leaves(output: Any) -> list[torch.Tensor]:
    return list(output) if isinstance(output, (tuple, list)) else [output]


@pytest.mark.parametrize("size", [6, 5], ids=["even", "uneven"])
@pytest.mark.parametrize("name", CASES)
def test_a_rule_holds_on_shards(name: str, size: int) -> None:
    """With any one dimension of any input sharded, the shards together are the result of one process."""
    call, make = CASES[name]
    tensors = make(size)
    exported = torch.export.export(_Model(call), tensors).run_decompositions({})
    expected = _leaves(call(*tensors))
    for argument, tensor in enumerate(tensors):
        for dim in range(tensor.dim()):
            outputs = _simulate(exported, tensors, argument, dim)
            for got, want in zip(outputs, expected, strict=True):
                torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5, msg=f"argument {argument}, dim {dim}")


@pytest.mark.parametrize("options", [{}, {"output_size": 12}], ids=["", "with the size"])
def test_copies_of_elements_stay_on_their_device(options: dict[str, int]) -> None:
    """Repeating along a sharded dimension has a local form, and needs no collective."""
    x = torch.randn(3, 6)
    exported = torch.export.export(_Model(lambda x: x.repeat_interleave(2, 1, **options)), (x,))
    result = sdy.propagate(exported.run_decompositions({}), {"x": 2}, in_shardings={"tensors_0": (None, "x")})
    local = make_local_torch_program(explicit_program(result.program, result.registry), result.registry, strict=True)
    torch.testing.assert_close(local.simulate(x)[0], x.repeat_interleave(2, 1))
    assert not result.redistributions


WRONG = {
    "another combiner": ("mm", "aten.mm.default", lambda op: sdy.rule("i k, k j -> i j", reduction="k:max"), 1),
    "passes through": ("cumsum", "aten.cumsum.default", sdy.rules.elementwise, 0),
    "of another dimension": ("flip", "aten.flip.default", lambda op: sdy.rules.along(op, 1), 0),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_rule_is_found(mistake: str) -> None:
    """The numbers differ from those of one process."""
    name, op_name, rule, dim = WRONG[mistake]
    call, make = CASES[name]
    tensors = make(6)
    exported = torch.export.export(_Model(call), tensors).run_decompositions({})
    registry = sdy.propagate(exported, {"x": 2}).registry
    wrong = tuple(evolve(item, rule=rule) if item.name == op_name else item for item in registry.definitions)
    outputs = _simulate(exported, tensors, 0, dim, registry=evolve(registry, definitions=wrong))
    assert not torch.allclose(outputs[0], call(*tensors))
