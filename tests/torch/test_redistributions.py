"""Redistributions are the collectives that run, those of ops that cannot run on shards among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

import shardy_py as sdy
from shardy_py.local.communication.plan import PlanCommunicationPass
from shardy_py.torch.parallel import collectives, make_local_torch_program, runner
from tests.torch.models import export, exported_decoder
from tests.torch.simulated import simulated
from tests.torch.test_import import GLOBS

pytestmark = pytest.mark.torch


def test_the_tensor_that_says_a_dtype_is_not_moved() -> None:
    """`type_as` takes nothing else from it."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.float().square().type_as(x)

    program = torch.export.export(Model(), (torch.ones(8, 4).bfloat16(),)).run_decompositions({})
    result = sdy.propagate(program, {"data": 4}, in_shardings={"x": ("data",)})
    assert not result.redistributions
    assert str(result.placements(0)[0]) == "Shard(0)"


@pytest.mark.parametrize("kind", ["flash", "efficient", "cudnn"])
def test_attention_of_gpus_without_dropout_runs_on_its_batch(kind: str) -> None:
    """Nothing is gathered for the state of the generator, which it returns besides, and its gradients take."""

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> list[torch.Tensor]:
        inputs = (query, key, value) if kind == "flash" else (query, key, value, None, True)
        results = getattr(torch.ops.aten, f"_scaled_dot_product_{kind}_attention").default(*inputs)
        return [item for item in results if isinstance(item, torch.Tensor)]

    graph = _traced_for_gpus(attend, *[(4, 8, 16, 32)] * 3)
    result = sdy.propagate(graph, {"data": 2}, in_shardings={0: ("data",)}, strict=True)
    assert not result.redistributions
    assert [str(sharding.dim_shardings[0]) for sharding in result.results[:2]] == ['{"data"}'] * 2


def test_gradients_of_rms_normalization_of_gpus_stay_on_their_rows() -> None:
    """The gradient of the weight alone is summed over the devices."""

    def gradients(grad: torch.Tensor, x: torch.Tensor, rstd: torch.Tensor, weight: torch.Tensor) -> list[torch.Tensor]:
        return list(torch.ops.aten._fused_rms_norm_backward(grad, x, [8], rstd, weight, [True, True]))

    graph = _traced_for_gpus(gradients, (4, 6, 8), (4, 6, 8), (4, 6, 1), (8,))
    result = sdy.propagate(graph, {"data": 2}, in_shardings={0: ("data",)}, strict=True)
    assert [item.kind for item in result.redistributions] == ["all_reduce"]
    assert str(result.results[0].dim_shardings[0]) == '{"data"}'


def _traced_for_gpus(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Any:
    """Return the graph of a function of tensors that would be on a GPU."""
    with FakeTensorMode():
        tensors = [torch.empty(shape, dtype=torch.half, device="cuda") for shape in shapes]
    return make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(*tensors)


def test_a_pass_on_communication_that_fails_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program runs without passes then, and says which one failed."""

    def fail(*_arguments: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(PlanCommunicationPass, "run", fail)
    program = export(_Model(torch.tanh), torch.ones(8, 4))
    result = sdy.propagate(program, {"data": 4}, in_shardings={"x": ("data",)})
    local = make_local_torch_program(result.torch_forms.explicit, result.registry)
    assert [item.code for item in local.warnings] == ["communication-pass"]


class _Model(torch.nn.Module):
    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: torch.Tensor) -> Any:
        return self.call(torch.tanh(x))


def _ran(
    result: sdy.Result, x: torch.Tensor, want: torch.Tensor, monkeypatch: pytest.MonkeyPatch, *, optimize: bool
) -> Counter[str]:
    """Return how often each kind of collective runs, and check the numbers."""
    counts: Counter[str] = Counter()

    def counting(devices: Any, kind: str, *given: Any) -> Any:
        counts[kind] += 1
        return collectives.collective(devices, kind, *given)

    monkeypatch.setattr(runner, "collective", counting)
    local = make_local_torch_program(result.torch_forms.explicit, result.registry, optimize=optimize)
    torch.testing.assert_close(local.simulate(x)[0], want, rtol=1e-5, atol=1e-5)
    return counts


CASES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], tuple[int, ...], tuple[Any, ...]]] = {
    "a reshape whose factors are cut by other axes": (lambda x: x.view(5, 6, 4).sum(1), (5, 24), ("a", ("b", "a2"))),
    "windows": (lambda x: functional.unfold(x, 3), (5, 4, 6, 7), ("a", "b")),
    "windows put back": (lambda x: functional.fold(x, (6, 8), 2, stride=2), (5, 16, 12), (None, ("b", "a"), "a2")),
    "matrices of a batch": (lambda x: torch.linalg.inv(x + 4 * torch.eye(4)), (5, 4, 4), ("a",)),
    "truth values": (lambda x: (x > 0.9).all(0), (6, 8), ("a", "b")),
}


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_collectives_that_run_are_told(name: str, monkeypatch: pytest.MonkeyPatch, *, optimize: bool) -> None:
    """As many run as are told, of the same kinds, whether communication passes move them or not."""
    call, shape, sharding = CASES[name]
    x = torch.randn(shape)
    result = sdy.propagate(export(_Model(call), x), {"a": 2, "b": 2, "a2": 2}, in_shardings={"x": sharding})
    listed = result.redistributions if optimize else result.torch_forms.redistributions(optimize=False)
    kinds = Counter(item.kind for item in listed)
    assert kinds == _ran(result, x, call(torch.tanh(x)), monkeypatch, optimize=optimize)
    assert kinds or optimize


def test_a_gather_inside_an_op_names_what_is_gathered() -> None:
    """It has the node whose tensor moves, and the placements before and behind."""
    x = torch.randn(5, 4, 4)
    result = sdy.propagate(export(_Model(torch.linalg.inv), x), {"a": 2, "b": 2}, in_shardings={"x": ("b",)})
    (actual,) = (item for item in result.torch_forms.redistributions(optimize=False) if item.node == "tanh")
    assert actual.kind == "all_gather"
    assert [str(item) for item in actual.before] == ["Replicate()", "Shard(0)"]
    assert [str(item) for item in actual.after] == ["Replicate()", "Replicate()"]
    assert actual.bytes == 3 * 4 * 4 * 4


def test_constants_are_not_moved() -> None:
    """What any device can make is made where it is needed; the numbers are those of one process."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            order = torch.argsort(x[:, 0])
            inverse, sorted_rows = torch.empty_like(order), torch.zeros_like(x)
            inverse[order] = torch.arange(8)
            sorted_rows[order] = x
            return inverse, sorted_rows, torch.full_like(x, 3.0).flip(0) * x

    x = torch.randn(8, 4)
    program = export(Model(), x)
    result = sdy.propagate(program, {"data": 4}, in_shardings={"x": ("data",)})
    assert not [item for item in result.redistributions if item.node.startswith(("arange", "empty", "zeros", "full"))]
    for actual, expected in zip(simulated(program, [x], {"data": 4}, {"x": ("data",)}), Model()(x), strict=True):
        assert torch.equal(actual, expected)


def test_costs_count_the_collectives_that_run() -> None:
    """The cost has as many collectives as the redistributions, and the bytes that an all-reduce of each shard sends."""
    result = sdy.propagate(exported_decoder(), {"data": 2, "model": 2}, in_shardings=GLOBS)
    cost = result.cost()
    assert cost.is_counted
    assert cost.counts == Counter(item.kind for item in result.redistributions)
    assert {item.axes for item in cost.transfers} == {'{"model"}'}
    # Of two devices each sends half of its shard twice.
    assert cost.communication_bytes.value == sum(item.bytes for item in result.redistributions)
