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
from shardy_py.torch.modules.symbolic_step import make_symbolic_step
from shardy_py.torch.modules.symbolic_trace import SizeSymbols, SymbolicTrace, sampled
from shardy_py.torch.parallel.process_groups import ProcessGroups
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


class Sums(nn.Module):
    """Sums along a dimension, for which a sharded input is gathered first."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x.cumsum(1) / x.shape[1]).cumsum(0)


class Unrolled(nn.Module):
    """A state that a loop over the rows updates."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(8)
        for row in range(len(x)):
            state = self.linear(state + x[row]).tanh()
        return state


class Counted(nn.Module):
    """A layer that also returns a size, a part of it, and how it compares."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int, float, bool]:
        return self.linear(x), x.shape[0] * 2, x.shape[0] / 3, x.shape[0] > x.shape[1]


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
    symbols = SizeSymbols(((batch, rows, width),), (batch, rows, width), (4, 12, 8))
    trace = SymbolicTrace(None, None, symbols, (sympy.Eq(width, 8), rows <= 16))
    varied, samples = sampled(trace, 4, 65, 65)
    assert varied.symbols.fixed == {width: 8}
    assert samples is not None
    assert samples.near == [(260, 12), (264, 12), (260, 16), (268, 4), (256, 8)]
    assert samples.smaller == [(4, 4), (128, 4)]
    assert samples.larger == [(16900, 12), (520, 12)]
    assert varied.symbols.sizes_of(((6, 9, 8),)) == (6, 9)
    assert varied.symbols.sizes_of(((6, 9, 7),)) is None


def test_one_program_runs_at_all_sizes_that_divide(mesh: Any) -> None:
    """Others get a program of their own, for their remainder; sizes of one have a trace of their own."""
    parallel = sdy.parallelize(Perceptron(), mesh, torch.randn(256, 16), {"x": ("data",)}, dynamic_shapes=True)
    for size in (256, 512, 1024, 128):
        assert parallel(torch.randn(size, 16)).shape == (size, 16)
    assert len(graphs_of(parallel)) == 1
    for size in (257, 511, 1):
        assert parallel(torch.randn(size, 16)).shape == (size, 16)
    assert len(graphs_of(parallel)) == 3


def test_a_program_is_for_the_sizes_between_those_that_it_was_made_at(mesh: Any) -> None:
    """Of few rows less is sent otherwise than of many: they have another program."""
    parallel = sdy.parallelize(Perceptron(), mesh, torch.randn(256, 16), {"x": ("data",)}, dynamic_shapes=True)
    for size in (256, 4, 128):
        assert parallel(torch.randn(size, 16)).shape == (size, 16)
    programs = list(parallel.sdy_program.steps.values())
    assert programs[0].graphs is programs[2].graphs is not programs[1].graphs
    assert programs[0].counts != programs[1].counts
    with pytest.raises(sdy.ShardyError):
        parallel(torch.randn(8, 15))


def test_an_example_that_is_too_small_is_named(mesh: Any) -> None:
    """A size of one is for the example only; larger sizes share a program."""
    with pytest.warns(UserWarning, match="the input x has the size 1 in dimension 0 of its example"):
        parallel = sdy.parallelize(Perceptron(), mesh, torch.randn(1, 16), {"x": ("data",)}, dynamic_shapes=True)
    for size in (256, 512):
        assert parallel(torch.randn(size, 16)).shape == (size, 16)
    assert len(graphs_of(parallel)) == 2


def test_a_program_is_for_the_sizes_on_which_all_processes_agree(mesh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another process has no program for several sizes, or not for these, this one makes one for each."""
    for first, second in ((True, True), (False, True), (True, False)):
        monkeypatch.setattr(ProcessGroups, "all_agree", lambda self, answer, others=first: answer and others)
        parallel = sdy.parallelize(Perceptron(), mesh, torch.randn(256, 16), {"x": ("data",)}, dynamic_shapes=True)
        monkeypatch.setattr(ProcessGroups, "all_agree", lambda self, answer, others=second: answer and others)
        parallel(torch.randn(512, 16))
        assert len(graphs_of(parallel)) == (1 if first and second else 2)


def test_a_module_that_no_program_for_several_sizes_fits_is_tried_once(
    mesh: Any, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """At other remainders it is not tried again, and one warning says so; each shape has a right program."""
    tried = []

    def make(*args: Any) -> Any:
        tried.append(args)
        return make_symbolic_step(*args)

    monkeypatch.setattr("shardy_py.torch.modules.programs_by_size.make_symbolic_step", make)
    model = Unrolled()
    parallel = sdy.parallelize(model, mesh, torch.ones(4, 8), dynamic_shapes=True)
    for size in (4, 5, 6):
        x = torch.randn(size, 8)
        torch.testing.assert_close(parallel(x), model(x))
    assert len(graphs_of(parallel)) == 3
    assert len(tried) == 1
    assert ["program-per-shape" in str(item.message) for item in recwarn].count(True) == 1


def test_inputs_divide_as_the_example_where_they_are_gathered_at_once(mesh: Any) -> None:
    """No op has a shard of such an input, only the argument: the program does not cut the padding of uneven ones."""
    parallel = sdy.parallelize(Sums(), mesh, torch.randn(4, 8, 8), {0: (None, "data")}, dynamic_shapes=True)
    for shape in ((4, 8, 8), (8, 16, 8), (5, 7, 8)):
        assert parallel(torch.randn(shape)).shape == shape
    first, second, third = parallel.sdy_program.steps.values()
    assert first.graphs is second.graphs is not third.graphs


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
    assert len(graphs_of(parallel)) == 3


def test_outputs_that_are_no_tensors_follow_the_sizes(mesh: Any) -> None:
    """Integers, floats and truth values, of one program."""
    parallel = sdy.parallelize(Counted(), mesh, torch.ones(512, 4), {"x": ("data",)}, dynamic_shapes=True)
    for size in (512, 516, 600):
        assert parallel(torch.ones(size, 4))[1:] == (size * 2, size / 3, True)
    assert len(graphs_of(parallel)) == 1


def test_a_decoder_has_one_program_for_batches_and_lengths(mesh: Any, recwarn: pytest.WarningsRecorder) -> None:
    """Where it depends on small sizes what is moved, the program of larger ones is for these."""
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
    message = "the input tokens has the size 8 in dimension 1, and the program for several shapes is for 260 or more"
    assert message in str(recwarn.list[-1].message)
    for shape in ((4, 8), (128, 260), (132, 264)):
        batch = torch.zeros(shape, dtype=torch.int64)
        parallel(batch, batch).backward()
    small, first, second = parallel.sdy_program.steps.values()
    assert first.graphs is second.graphs is not small.graphs
