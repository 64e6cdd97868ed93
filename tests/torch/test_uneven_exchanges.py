"""Exchanges of shards that do not divide, counted; and views of tensors whose strides are others on devices."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

import shardy_py as sdy
from shardy_py.torch.parallel import make_local_torch_program
from shardy_py.torch.parallel.calls import call
from tests.torch.models import export
from tests.torch.test_other_models import COLLECTIVES

pytestmark = pytest.mark.torch


class Sum(torch.nn.Module):
    """A sum of two tensors, whose shardings disagree."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) + torch.tanh(y)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("size", [64, 66])
def test_collectives_are_counted_where_sizes_do_not_divide(size: int, *, optimize: bool) -> None:
    """A dimension whose parts are cut otherwise is gathered, which the redistributions say."""
    tensors = torch.randn(5, size), torch.randn(5, size)
    program = export(Sum(), *tensors)
    shardings = {"x": (None, ("data", "model")), "y": ("model", "data")}
    result = sdy.propagate(program, {"data": 2, "model": 3}, in_shardings=shardings)
    forms = result.torch_forms
    local = make_local_torch_program(forms.explicit, result.registry, strict=True, optimize=optimize)
    torch.testing.assert_close(local.simulate(*tensors)[0], Sum()(*tensors))
    ran = Counter(op.name.removeprefix("spmd.") for op in local.program.walk() if op.name in COLLECTIVES)
    assert ran == Counter(item.kind for item in forms.redistributions(optimize=optimize))
    assert optimize or ran.total() > 0


@pytest.mark.parametrize("optimize", [True, False])
def test_a_sharded_dimension_of_size_one_is_gathered_before_it_is_repeated(*, optimize: bool) -> None:
    """The gather stands in the redistributions and runs once."""
    tensors = torch.randn(5, 8), torch.randn(1, 8)
    program = export(Sum(), *tensors)
    result = sdy.propagate(program, {"data": 2, "model": 2}, in_shardings={"x": ("data",), "y": ("model",)})
    forms = result.torch_forms
    local = make_local_torch_program(forms.explicit, result.registry, strict=True, optimize=optimize)
    torch.testing.assert_close(local.simulate(*tensors)[0], Sum()(*tensors))
    ran = Counter(op.name.removeprefix("spmd.") for op in local.program.walk() if op.name in COLLECTIVES)
    assert ran == Counter(item.kind for item in forms.redistributions(optimize=optimize))
    assert optimize or ran["all_gather"] > 0


def test_a_view_of_other_strides() -> None:
    """What one device can view may have other strides after a gather; its elements are in the same order."""
    tensor = torch.arange(6).view(2, 3).t()
    (got,) = call("aten.view.default", {"operand_names": ("self",), "size": (6,)}, [tensor], "cpu")
    assert got.tolist() == [0, 3, 1, 4, 2, 5]
