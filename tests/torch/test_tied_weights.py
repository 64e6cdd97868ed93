"""Tied weights: one argument, one sharding, one DTensor, under any of their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import shardy_py as sdy
from tests.torch.models import export
from tests.torch.simulated import simulated

pytestmark = pytest.mark.torch
ROWS = ("model", None)


class Tied(nn.Module):
    """An embedding whose table is the weight of two heads, one of them in a submodule, and a buffer with two names."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(32, 16)
        self.first = nn.Linear(16, 32, bias=False)
        self.inner = nn.ModuleDict({"head": nn.Linear(16, 32)})
        self.first.weight = self.inner["head"].weight = self.emb.weight
        self.register_buffer("scale", torch.full((16,), 2.0))
        self.inner.register_buffer("scale", self.scale)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.emb(tokens) * self.scale
        return self.first(x.relu() + self.inner.scale) + self.inner["head"](x)


NAMES = ("emb.weight", "first.weight", "inner.head.weight")
TOKENS = torch.arange(24).view(4, 6)


def _exported() -> torch.export.ExportedProgram:
    return export(Tied(), TOKENS)


@pytest.mark.parametrize("name", [*NAMES, "emb.*", "*.head.weight", "*.weight"])
def test_a_tied_weight_has_one_sharding_under_any_name(name: str) -> None:
    """It is one argument; its sharding is that of all its names, and so is what propagates."""
    result = sdy.propagate(_exported(), {"model": 4}, in_shardings={name: ROWS})
    assert {str(result.placements(each)[0]) for each in NAMES} == {"Shard(0)"}
    assert next(item.kind for item in result.torch_forms.redistributions(optimize=False)) == "all_reduce"
    sizes = {"tokens": 24 * 8, "table": 32 * 16 * 4, "scale": 16 * 4, "bias": 32 * 4}
    assert result.summary.parameter_bytes == sum(sizes.values())


def test_tied_weights_run_on_shards() -> None:
    """The simulated devices compute what one process does."""
    exported = _exported()
    (actual,) = simulated(exported, [TOKENS], {"model": 4}, {"inner.head.weight": ROWS})
    torch.testing.assert_close(actual, exported.module()(TOKENS))


def test_different_shardings_for_two_names_of_one_tensor_are_an_error() -> None:
    """The error names both; of two globs for one name the last still counts."""
    exported = _exported()
    for other in ("first.weight", "first.*"):
        with pytest.raises(sdy.OptionError, match=r"same tensor.*'emb.weight'") as error:
            sdy.propagate(exported, {"model": 4}, in_shardings={"emb.weight": ROWS, other: (None, "model")})
        assert error.value.diagnostics[0].code == "tied-shardings"
    result = sdy.propagate(exported, {"model": 4}, in_shardings={"*.weight": (None, "model"), "emb.weight": ROWS})
    assert str(result.placements("first.weight")[0]) == "Shard(0)"


def test_tied_weights_stay_tied_in_files_and_packed_programs(tmp_path: Path) -> None:
    """What is read again has the same names."""
    from shardy_py.torch.frontend import TORCH

    path = tmp_path / "tied.pt2"
    exported = _exported()
    torch.export.save(exported, path)
    sources: list[Any] = [path, TORCH.from_bytes(TORCH.to_bytes(exported))]
    for source in sources:
        result = sdy.propagate(source, {"model": 4}, in_shardings={"first.weight": ROWS})
        assert str(result.placements("emb.weight")[0]) == "Shard(0)"


def test_weights_of_equal_values_are_not_tied() -> None:
    """Only the same tensor is; a view of another shape is a tensor of its own."""

    class Apart(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
            self.turned = nn.Linear(8, 8, bias=False)
            with torch.no_grad():
                self.second.weight.copy_(self.first.weight)
            self.turned.weight = nn.Parameter(self.first.weight.t())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.first(x) + self.second(x) * self.turned(x)

    result = sdy.propagate(export(Apart(), torch.ones(4, 8)), {"model": 2}, in_shardings={"second.weight": "[{}, {}]"})
    assert len(result.program.origin.arguments) == 4


def test_inputs_come_first_among_the_arguments() -> None:
    """Number 0 is the first input of ``forward``, whatever the module holds."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.register_buffer("scale", torch.ones(4))

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.linear(x) * self.scale + y + torch.tensor(10.0)

    exported = export(Model(), torch.ones(8, 4), torch.ones(8, 4))
    result = sdy.propagate(exported, {"data": 2}, in_shardings={0: ("data", None)})
    assert str(result.placements("x")[0]) == str(result.placements(1)[0]) == "Shard(0)"
    assert result.program.origin.argument_names[:2] == ("x", "y")
