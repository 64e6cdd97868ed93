"""Programs that write to tensors in place, as an export without decompositions gives them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

import shardy_py as sdy
from shardy_py.torch.parallel import explicit_program, make_local_torch_program
from tests.torch.simulated import simulated

pytestmark = pytest.mark.torch


class Writes(torch.nn.Module):
    """Writes to a part of a tensor, to a view of it, and to buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(8)
        self.register_buffer("total", torch.ones(8))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.tanh(x)
        y[:, 1:3] = 0.5
        part = y[:, 2:4]
        part.add_(x[:, 2:4])
        self.total.add_(x.sum(0))
        return self.norm(y).relu_(), y * self.total


class Strided(torch.nn.Module):
    """Looks at places in the memory of a transposed tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_strided(x.mT, (2, 4), (4, 1))


def _viewed(x: torch.Tensor) -> torch.Tensor:
    y = torch.tanh(x)
    y[:, 1:3].add_(1)
    return y


def _unviewed(x: torch.Tensor) -> torch.Tensor:
    left, right = torch.tanh(x).add_(1).chunk(2, 1)
    return left.mul_(2) + right.detach()


def test_writes_through_views_are_seen() -> None:
    """An export as it is gives what one process computes; buffers are results, too."""
    module, x = Writes(), torch.randn(5, 8)
    exported = torch.export.export(module, (x,))
    assert any(str(node.target).startswith("aten.add_.") for node in exported.graph.nodes)
    result = sdy.propagate(exported, {"a": 2}, in_shardings={"x": ("a",)})
    assert "total" in {output.writes for output in result.program.origin.outputs}
    changed = deepcopy(module)
    want = changed(x)
    got = simulated(result.program.origin.native, (x,), {"a": 2}, {"x": ("a",)})
    assert any(torch.allclose(item, changed.norm.running_mean) for item in got)
    for item in want:
        assert any(item.shape == entry.shape and torch.allclose(item, entry, atol=1e-5) for entry in got)


def test_a_graph_that_writes_to_views_is_refused() -> None:
    """The error says which node does so; writes that no other tensor shows are as good as new tensors."""
    x = torch.randn(4, 8)
    with pytest.raises(sdy.UnsupportedError, match="writes to slice_1, whose elements others read"):
        sdy.propagate(make_fx(_viewed, tracing_mode="fake")(x), {"a": 2})
    graph = make_fx(_unviewed, tracing_mode="fake")(x)
    assert "add_" in graph.code
    result = sdy.propagate(graph, {"a": 2}, in_shardings={0: ("a",)})
    assert not result.redistributions
    local = make_local_torch_program(result.torch_forms.explicit, result.registry, strict=True)
    torch.testing.assert_close(local.simulate(x)[0], _unviewed(x))


def test_places_in_memory_of_a_view_are_refused() -> None:
    """Devices have other memory; a tensor of its own is whole on each."""
    program = torch.export.export(Strided(), (torch.randn(4, 8),))
    with pytest.raises(sdy.UnsupportedError, match="looks at places in memory of a view"):
        sdy.propagate(program, {"a": 2})


def _trained(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor, count: torch.Tensor) -> list[torch.Tensor]:
    y = functional.batch_norm(x, mean, variance, training=True) + functional.batch_norm(x, None, None, training=True)
    same = count.detach()
    count.add_(1)
    count.mul_(2)
    return [y * same, mean, variance, same]


@pytest.mark.parametrize(("rows", "again"), [(4, False), (5, False), (5, True)])
def test_inputs_that_are_written_to_are_results(rows: int, again: bool) -> None:
    """Who reads an input behind a write, also one that its schema does not say, reads what it was written to be.

    A graph that is traced again returns new tensors, and copies them to the inputs at its end.
    """
    inputs = torch.randn(rows, 6), torch.zeros(6), torch.ones(6), torch.tensor(3)
    graph = make_fx(_trained, tracing_mode="fake")(*inputs)
    assert "native_batch_norm.default" in graph.code
    if again:
        functional_graph = torch.func.functionalize(graph, remove="mutations_and_views")
        graph = make_fx(functional_graph, tracing_mode="fake")(*(item.clone() for item in inputs))
        assert "aten.copy_.default" in graph.code
    result = sdy.propagate(graph, {"a": 2}, in_shardings={0: ("a",)}, strict=True)
    local = make_local_torch_program(result.torch_forms.explicit, result.registry, strict=True)
    copies = [item.clone() for item in inputs]
    values = local.simulate(*inputs)
    for number, want in enumerate(_trained(*copies)):
        torch.testing.assert_close(values[local.origin.outputs[number].result], want, rtol=1e-5, atol=1e-5)
    assert all(
        torch.equal(left, right) for left, right in zip(inputs[1:3], (torch.zeros(6), torch.ones(6)), strict=True)
    )


@pytest.mark.parametrize(
    "call", [lambda x, y: [x.add_(1) * y], lambda x, y: functional.batch_norm(x * 1, y, y + 1, training=True)]
)
def test_an_input_that_is_written_to_has_to_be_returned(call: Callable[..., Any]) -> None:
    """The tensors of the caller stay as they are: the error names the input."""
    graph = make_fx(call, tracing_mode="fake")(torch.ones(4, 6), torch.ones(6))
    with pytest.raises(sdy.UnsupportedError, match=r"writes to the input [xy]_1, which is not returned"):
        sdy.propagate(graph, {"a": 2})


def test_the_hint_for_writes_through_views_works() -> None:
    """A graph that is traced again has no views, and gives the numbers that it gave."""
    x = torch.randn(4, 8)
    graph = make_fx(_viewed, tracing_mode="fake")(x)
    again = make_fx(torch.func.functionalize(graph, remove="mutations_and_views"), tracing_mode="fake")(x)
    result = sdy.propagate(again, {"a": 2}, in_shardings={0: ("a",)}, strict=True)
    local = make_local_torch_program(result.torch_forms.explicit, result.registry, strict=True)
    torch.testing.assert_close(local.simulate(x)[0], _viewed(x))


def _written(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    half, out, wide = (x * 1).bfloat16(), torch.zeros(6, 4), torch.zeros(4, 6, dtype=torch.int64)
    torch.add(y.t(), 1, out=out)
    wide.copy_(y * 3)
    turned = y.clone().transpose_(0, 1)
    square = y.clone().pow_(2).ge_(0.5)
    return [half.add_(y), out, wide, turned, square.sub_(y[0]), functional.dropout(y * 1, 0.5, True, inplace=True)]


@pytest.mark.parametrize("sharding", [("a", None), (None, "a")])
def test_what_is_written_keeps_its_type(sharding: tuple[str | None, ...]) -> None:
    """Writes of other types, to ``out`` and by operators whose arguments have other names, are as they were."""
    x, y = torch.randn(4, 6), torch.randn(4, 6)
    graph = make_fx(_written, tracing_mode="fake")(x, y)
    assert all(name in graph.code for name in ("add.out", "pow_.Scalar", "transpose_.default", "bernoulli_.float"))
    result = sdy.propagate(graph, {"a": 2}, in_shardings={1: sharding}, strict=True)
    local = make_local_torch_program(result.torch_forms.explicit, result.registry)
    torch.manual_seed(2)
    want = _written(x, y)
    torch.manual_seed(2)
    for left, right in zip(local.simulate(x, y), want, strict=True):
        torch.testing.assert_close(left, right)


def _adam_step(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Return parameters and moments after a fused step, and after operators on lists that write to them."""
    parameters, gradients, first, second, counts = (list(tensors[number : number + 2]) for number in range(0, 10, 2))
    rates = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.01, "eps": 1e-8}
    flags = {"amsgrad": False, "maximize": False}
    torch._fused_adamw_(parameters, gradients, first, second, [], counts, **rates, **flags)
    torch._foreach_add_(first, gradients)
    torch._foreach_mul_(first[:1], 2.0)
    return [*parameters, *first, *second]


def test_operators_on_lists_write_to_each_tensor_of_a_list() -> None:
    """What they write is in the results; each tensor is sharded by itself, and nothing moves."""
    tensors = [torch.rand(shape) for _ in range(4) for shape in ((4, 6), (8,))] + [torch.tensor(1.0), torch.tensor(2.0)]
    graph = make_fx(_adam_step, tracing_mode="fake")(*(item.clone() for item in tensors))
    result = sdy.propagate(graph, {"x": 2}, in_shardings={0: ("x",), 3: ("x",)}, strict=True)
    local = make_local_torch_program(explicit_program(result.program, result.registry), result.registry, strict=True)
    expected = _adam_step(*(item.clone() for item in tensors))
    torch.testing.assert_close(local.simulate(*tensors), expected, rtol=1e-6, atol=1e-6)
    assert not result.redistributions
