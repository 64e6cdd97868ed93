"""Ops over a sharded dimension: the numbers are those of one device, and only numbers for each row are moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import shardy_py as sdy
from shardy_py.torch.parallel import explicit_program, make_local_torch_program
from tests.torch.models import export

pytestmark = pytest.mark.torch
ROWS, PARTS = 6, 4
TARGETS = torch.tensor([3, 0, 19, -100, 7, 11])
Function = Callable[..., Any]


class Applied(nn.Module):
    """A function of one tensor that is sharded along its last dimension, and of others."""

    def __init__(self, function: Function, others: tuple[torch.Tensor, ...]) -> None:
        super().__init__()
        self.function = function
        for number, item in enumerate(others):
            self.register_buffer(f"other{number}", item)
        self.count = len(others)

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x, *(getattr(self, f"other{number}") for number in range(self.count)))


CASES: dict[str, Function] = {
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "logsumexp_keepdim": lambda x: torch.logsumexp(x, (0, 1), keepdim=True),
    "norm": lambda x: torch.linalg.vector_norm(x),
    "norm_1": lambda x: torch.linalg.vector_norm(x, 1, dim=1),
    "norm_inf": lambda x: torch.linalg.vector_norm(x, float("inf"), dim=1, keepdim=True),
    "norm_3": lambda x: torch.linalg.vector_norm(x, 3),
    "norm_0": lambda x: torch.linalg.vector_norm(x.relu(), 0, dim=1),
    "var": lambda x: x.var(1),
    "std": lambda x: x.std(1, unbiased=False, keepdim=True),
    "var_mean": lambda x: torch.var_mean(x, 1),
    "var_all": lambda x: x.var(),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[1:]),
    "rms_norm": lambda x: functional.rms_norm(x, x.shape[1:]),
    "argmax": lambda x: x.argmax(1),
    "argmin_keepdim": lambda x: x.argmin(1, keepdim=True),
    "argmax_all": lambda x: x.argmax(),
    "max": lambda x: x.max(1),
    "min": lambda x: x.min(1, keepdim=True),
    "topk": lambda x: x.topk(2, 1),
    "smallest": lambda x: x.topk(2, 1, largest=False),
    "nll_loss": lambda x: functional.nll_loss(x, TARGETS),
    "cross_entropy": lambda x: functional.cross_entropy(x, TARGETS),
    "cross_entropy_sum": lambda x: functional.cross_entropy(x, TARGETS, reduction="sum"),
    "cross_entropy_rows": lambda x: functional.cross_entropy(x, TARGETS, reduction="none"),
    "weighted": lambda x: functional.cross_entropy(x, TARGETS, weight=torch.linspace(0.5, 2, x.shape[1])),
}


def simulated(module: nn.Module, x: torch.Tensor, *, parts: int = PARTS) -> tuple[list[Any], sdy.Result]:
    """Return what devices compute that have parts of the last dimension, and the propagated program."""
    exported = export(module, x)
    spec = (*[None] * (x.dim() - 1), "m")
    result = sdy.propagate(exported, {"m": parts}, in_shardings={"x": spec}, keep_uneven_shardings=True)
    local = make_local_torch_program(explicit_program(result.program, result.registry), result.registry)
    state = {**exported.state_dict, **exported.constants}
    arguments = [x if item.kind == "input" else state[item.name] for item in local.origin.arguments]
    return local.simulate(*arguments), result


def leaves(outputs: Any) -> list[torch.Tensor]:
    """Return the tensors of what a function returns."""
    return torch.utils._pytree.tree_leaves(tuple(outputs) if isinstance(outputs, tuple) else outputs)


@pytest.mark.parametrize("size", [20, 21])
@pytest.mark.parametrize("name", CASES)
def test_parts_give_what_one_device_gives(name: str, size: int) -> None:
    """Also where the dimension does not divide, and its last part is padded."""
    module, x = Applied(CASES[name], ()), torch.randn(ROWS, size)
    x[2, 5] = x[2, 6] = 9
    got, _ = simulated(module, x)
    for item, want in zip(got, leaves(module(x)), strict=True):
        torch.testing.assert_close(item, want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"topk", "smallest", "weighted"}))
def test_only_numbers_for_each_row_are_moved(name: str) -> None:
    """What a device sends at once are no more bytes than two numbers for each row have."""
    _, result = simulated(Applied(CASES[name], ()), torch.randn(ROWS, 20))
    assert 0 < max(item.bytes for item in result.redistributions) <= ROWS * 8
    assert {item.kind for item in result.redistributions} == {"all_reduce"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("reduction", "ignored"), [(0, -100), (1, -100), (2, -100)])
@pytest.mark.parametrize("size", [20, 21])
def test_gradients_of_class_losses_need_no_sum_over_classes(
    size: int, reduction: int, ignored: int, dtype: torch.dtype
) -> None:
    """They are those of one device, also where rows are ignored, and only the softmax itself sums over devices."""
    aten = torch.ops.aten
    upstream = torch.randn(ROWS if reduction == 0 else (), dtype=dtype)
    total = TARGETS.ne(ignored).sum().to(dtype)

    def gradient(x: torch.Tensor) -> torch.Tensor:
        y = x.log_softmax(1)
        rows = aten.nll_loss_backward(upstream, y, TARGETS, None, reduction, ignored, total)
        return aten._log_softmax_backward_data(rows, y, 1, dtype)

    module, x = Applied(gradient, ()), torch.randn(ROWS, size, dtype=dtype)
    got, result = simulated(module, x)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(got[0], module(x), atol=tolerance, rtol=tolerance)
    assert [item.kind for item in result.redistributions] == ["all_reduce"] * 2


def test_gradients_are_zero_where_no_row_counts() -> None:
    """The mean over no rows is no number, and its gradients are zeros, also at an ignored class."""
    aten, targets = torch.ops.aten, torch.full((ROWS,), 3)

    def gradient(x: torch.Tensor) -> torch.Tensor:
        y = x.log_softmax(1)
        rows = aten.nll_loss_backward(torch.ones(()), y, targets, None, 1, 3, torch.zeros(()))
        return aten._log_softmax_backward_data(rows, y, 1, x.dtype)

    module, x = Applied(gradient, ()), torch.randn(ROWS, 20)
    got, _ = simulated(module, x)
    assert got[0].equal(module(x))
    assert not got[0].any()


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "var", "cross_entropy"])
def test_half_precision_is_summed_in_single(name: str) -> None:
    """Short numbers give what the fused operator gives, up to the last bit."""
    module, x = Applied(CASES[name], ()), torch.randn(ROWS, 64).bfloat16()
    got, _ = simulated(module, x)
    torch.testing.assert_close(got[0], module(x), atol=1e-2, rtol=1e-2)
    assert got[0].dtype == torch.bfloat16


def test_rows_that_hold_no_number_are_found() -> None:
    """The place of the largest element is that of the first one that is no number, as PyTorch has it."""
    module, x = Applied(CASES["argmax"], ()), torch.randn(ROWS, 20)
    x[1, 13] = x[1, 3] = float("nan")
    got, _ = simulated(module, x)
    assert got[0].equal(x.argmax(1))


def test_weights_of_a_normalization_are_sharded_alike() -> None:
    """A layer norm with weight and bias along a sharded dimension."""
    module = Applied(lambda x, w, b: functional.layer_norm(x, (20,), w, b), (torch.randn(20), torch.randn(20)))
    x = torch.randn(ROWS, 20)
    got, _ = simulated(module, x)
    torch.testing.assert_close(got[0], module(x), atol=1e-5, rtol=1e-5)


def test_heads_of_keys_are_repeated_where_devices_are_more() -> None:
    """Four devices have one head of queries each, and two of them the same head of keys."""

    def attend(x: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        queries = x.unflatten(1, (4, 8)).permute(0, 1, 3, 2)
        return functional.scaled_dot_product_attention(queries, k, v, enable_gqa=True)

    module = Applied(attend, (torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)))
    x = torch.randn(2, 32, 7)
    exported = export(module, x)
    result = sdy.propagate(exported, {"m": 4}, in_shardings={"x": (None, "m", None)})
    local = make_local_torch_program(explicit_program(result.program, result.registry), result.registry)
    state = {**exported.state_dict, **exported.constants}
    arguments = [x if item.kind == "input" else state[item.name] for item in local.origin.arguments]
    torch.testing.assert_close(local.simulate(*arguments)[0], module(x), atol=1e-5, rtol=1e-5)
    assert result.redistributions == ()
