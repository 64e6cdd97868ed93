"""Parameters whose sizes the mesh does not divide, such as vocabularies."""

from __future__ import annotations

import pytest
import torch

import shardy_py as sdy
from shardy_py.jax.running import run_result

pytestmark = pytest.mark.torch


class _Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(53, 8)
        self.head = torch.nn.Linear(8, 53)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(tokens))


SHARDINGS = {"embed.weight": ("m", None), "head.weight": ("m", None)}


@pytest.fixture(scope="module")
def program() -> torch.export.ExportedProgram:
    """A model with a vocabulary of 53."""
    return torch.export.export(_Model(), (torch.zeros(4, 8, dtype=torch.long),)).run_decompositions({})


def test_a_reduced_sharding_of_a_parameter_is_a_warning(program: torch.export.ExportedProgram) -> None:
    """It names the parameter as the model does."""
    result = sdy.propagate(program, {"m": 4}, in_shardings=SHARDINGS)
    reduced = [item.message for item in result.warnings if item.code == "sharding-reduced"]
    assert len(reduced) == 2
    assert "(embed.weight)" in reduced[0]
    assert "size 53 does not divide into 4 shards" in reduced[0]


def test_an_uneven_parameter_keeps_its_sharding(program: torch.export.ExportedProgram) -> None:
    """Placements and plan follow it, and the program computes the same on padded shards."""
    result = sdy.propagate(program, {"m": 4}, in_shardings=SHARDINGS, keep_uneven_shardings=True)
    assert result.warnings == ()
    assert [item.kind for item in result.placements("embed.weight")] == ["shard"]
    assert set(result.parallelize_plan()) == {"embed", "head"}
    report = run_result(result, program, inputs=None, seed=0, tolerance=None, on_step=lambda *arguments: None)
    assert report.is_within
    assert report.compared_with
