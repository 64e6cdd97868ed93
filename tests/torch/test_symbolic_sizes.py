"""Parallel modules whose inputs have other sizes than the example's: one program for those that its guards allow."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
import torch
import torch.distributed as dist
from torch import nn

import shardy_py as sdy
from shardy_py.torch.modules.size_expressions import ExpressionFitter
from shardy_py.torch.modules.symbolic_trace import SizeSymbols, SymbolicTrace, sampled
from tests.torch.models import Decoder
from tests.torch.parallel_processes import Perceptron

pytestmark = pytest.mark.torch


class Pooled(nn.Module):
    """Sizes of all kinds: a reshape of a product, a range, a mean, one more position, and a window of at most eight."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.first = nn.Linear(8, 16), nn.Parameter(torch.randn(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, rows, width = x.shape
        x = torch.cat([self.first.expand(batch, 1, width), x], 1)
        x = x + torch.arange(rows + 1)[None, :, None]
        y = self.up(x.reshape(-1, width)).view(batch, rows + 1, 2, 8).transpose(1, 2)
        y = torch.softmax(y @ y.transpose(-1, -2), -1) @ y
        return y.mean((1, 2)) + y[:, :, :8].sum((1, 2)) / rows


def graphs_of(parallel: Any) -> set[int]:
    """Return the different graphs of a module."""
    return {id(step.graphs) for step in parallel.sdy_program.steps.values()}


def test_numbers_are_expressions_of_sizes() -> None:
    """Linear ones, those of the module and products with a part, and none where none fits."""
    rows, columns = sympy.symbols("rows columns", integer=True)
    samples = [(8, 12), (12, 12), (8, 20), (16, 28)]
    fitter = ExpressionFitter([rows, columns], samples, [rows * (columns + 1)])
    for function in (
        lambda rows, columns: 7,
        lambda rows, columns: rows // 4 + 3 * columns - 1,
        lambda rows, columns: rows * columns // 2,
        lambda rows, columns: rows * (columns + 1) // 2 + 5,
    ):
        expression = fitter.fit([function(*sizes) for sizes in samples])
        assert expression is not None
        assert expression.at({rows: 40, columns: 50}) == function(40, 50)
    assert fitter.fit([min(sizes[0], 12) for sizes in samples]) is None
    half = fitter.fit([sizes[0] // 2 for sizes in samples])
    assert half is not None
    assert half.at({rows: 9, columns: 12}).denominator == 2
    assert fitter.fit_quotient([3 / (sizes[0] * sizes[1]) for sizes in samples]) == (3, rows * columns)


def test_sizes_at_which_a_program_is_made_obey_its_guards() -> None:
    """What the module allows one value of stays as in the example; what has a limit is not scaled."""
    batch, rows, width = sympy.symbols("batch rows width", integer=True)
    symbols = SizeSymbols(((4, 12, 8),), {(0, 4): batch, (1, 12): rows, (2, 8): width})
    trace = SymbolicTrace(None, None, symbols, (sympy.Eq(width, 8), rows <= 16))
    varied, samples = sampled(trace, 4, 65)
    assert varied.symbols.fixed == {width: 8}
    assert samples == [(260, 12), (264, 12), (260, 16), (268, 4), (256, 8)]
    assert varied.symbols.sizes_of(((6, 9, 8),)) == (6, 9)
    assert varied.symbols.sizes_of(((6, 9, 7),)) is None


def test_one_program_runs_at_all_sizes_that_divide(mesh: Any) -> None:
    """Others get a program of their own, for their remainder; sizes of one have a trace of their own."""
    parallel = sdy.parallelize(Perceptron(), mesh, torch.randn(8, 16), {"x": ("data",)}, dynamic_shapes=True)
    for size in (4, 16, 24, 8):
        assert parallel(torch.randn(size, 16)).shape == (size, 16)
    assert len(graphs_of(parallel)) == 1
    for size in (5, 7, 1):
        assert parallel(torch.randn(size, 16)).shape == (size, 16)
    assert len(graphs_of(parallel)) == 3
    with pytest.raises(sdy.ShardyError):
        parallel(torch.randn(8, 15))


def test_numbers_of_a_program_follow_the_sizes(mesh: Any) -> None:
    """On a mesh of one device the program computes, and differentiates, what the module does at each size."""
    alone = dist.device_mesh.DeviceMesh("cpu", [0], mesh_dim_names=("data",))
    model = Pooled()
    parallel = sdy.parallelize(model, alone, torch.randn(4, 12, 8), {"x": ("data",)}, dynamic_shapes=True)
    for shape in ((4, 12, 8), (6, 12, 8), (5, 9, 8), (3, 8, 8), (3, 5, 8)):
        x = torch.randn(shape)
        want, got = model(x), parallel(x)
        torch.testing.assert_close(got, want)
        for output in (want, got):
            output.square().sum().backward()
        for left, right in zip(parallel.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(left.grad.to_local(), right.grad)
    # A window that is cut short has a program of its own.
    assert len(graphs_of(parallel)) == 2


def test_a_decoder_has_one_program_for_batches_and_lengths(mesh: Any) -> None:
    """Where it depends on small sizes what is moved, the program of larger ones runs at all."""
    model, tokens = Decoder(), torch.zeros(4, 8, dtype=torch.int64)
    parallel = sdy.parallelize(
        model,
        mesh,
        tokens,
        {"tokens": ("data",), "*.[qkv]_proj.weight": ("model", None), "embed_tokens.weight": ("model", None)},
        loss=lambda output, labels: nn.functional.cross_entropy(output[0].flatten(0, 1), labels.flatten()),
        example_targets=(tokens,),
        dynamic_shapes=True,
    )
    for shape in ((2, 3), (6, 12)):
        batch = torch.zeros(shape, dtype=torch.int64)
        parallel(batch, batch).backward()
    assert len(graphs_of(parallel)) == 1
