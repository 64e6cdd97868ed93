"""Programs that are exported with dynamic sizes: propagated at those of their example, and run at all."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.export import Dim

import shardy_py as sdy
from tests.torch.models import Decoder
from tests.torch.simulated import simulated

pytestmark = pytest.mark.torch
MESH = {"data": 2, "model": 2}
SHARDINGS = {"tokens": ("data",), "*.q_proj.weight": ("model", None)}


def test_shardings_pass_through_dynamic_sizes() -> None:
    """Also through reshapes whose sizes the program computes, with the numbers of one device."""
    model, tokens = Decoder().eval(), torch.randint(0, 32, (8, 12))
    shapes = {"tokens": {0: Dim.AUTO, 1: Dim.AUTO}}
    exported = torch.export.export(model, (tokens,), dynamic_shapes=shapes).run_decompositions({})
    assert any("sym_size" in str(node.target) for node in exported.graph.nodes)
    result = sdy.propagate(exported, MESH, in_shardings=SHARDINGS)
    assert str(result.results[0]) == '<@mesh, [{"data"}, {}, {}]>'
    (got, _) = simulated(exported, (tokens,), MESH, SHARDINGS)
    torch.testing.assert_close(got, model(tokens)[0], atol=1e-5, rtol=1e-5)


def test_a_size_that_depends_on_data_is_refused() -> None:
    """The error names the node."""

    class Chosen(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.nonzero()

    exported = torch.export.export(Chosen(), (torch.ones(4, 3),))
    with pytest.raises(sdy.UnsupportedError, match="has the dynamic shape"):
        sdy.propagate(exported, MESH)


class Windows(nn.Module):
    """Windows of four rows, an input with one row more, and a size as an output."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, int]:
        return self.linear(x + y[1:]).view(-1, 4, 4).mean(1), x.shape[0] // 4


def test_guards_are_checked_at_each_call(mesh: Any) -> None:
    """One program runs at all sizes that divide; the error for others says which input has which size."""
    rows = Dim("rows", min=3, max=64)
    shapes = ({0: 4 * rows}, {0: 4 * rows + 1})
    exported = torch.export.export(Windows(), (torch.ones(16, 4), torch.ones(17, 4)), dynamic_shapes=shapes)
    program = sdy.propagate(exported, mesh, in_shardings={"x": ("data",)}).to_torch(mesh)
    with torch.no_grad():
        for size in (16, 32, 64, 128):
            output, count = program(torch.ones(size, 4), torch.ones(size + 1, 4))
            assert (output.shape, count) == ((size // 4, 4), size // 4)
        shards = [program.program_at((torch.ones(size, 4), torch.ones(size + 1, 4))) for size in (32, 64, 128)]
        assert len({id(item.graph_module) for item in shards}) == 1
        # Many sizes take little memory: what is said of a parameter is one object.
        assert len({id(item.arguments[-1]) for item in shards}) == 1
        for x, y, message in (
            ((16, 5), (17, 4), "the input x has the size 5 in dimension 1, the program is for 4"),
            ((16, 4), (18, 4), "the input y has the size 18 in dimension 0, the program is for 17"),
            ((18, 4), (19, 4), r"the size 18 in dimension 0, the program is for sizes of the form 4\*"),
            ((16, 4), (17,), "the input y is of rank 1, the program is for rank 2"),
            ((8, 4), (9, 4), r"x.shape\[0\] is 8 and .*the program is for sizes with x.shape\[0\] >= 12"),
        ):
            with pytest.raises(sdy.OptionError, match=message):
                program(torch.ones(x), torch.ones(y))


def test_a_size_that_a_guard_excludes_is_named(mesh: Any) -> None:
    """The error shows the guard with the names of inputs, as the range of a dimension."""
    shapes = ({0: Dim("batch", max=64)},)
    exported = torch.export.export(nn.Linear(4, 4), (torch.ones(8, 4),), dynamic_shapes=shapes)
    program = sdy.propagate(exported, mesh, in_shardings={0: ("data",)}).to_torch(mesh)
    with (
        torch.no_grad(),
        pytest.raises(sdy.OptionError, match=r"shape\[0\] is 65, .* sizes with input.shape\[0\] <= 64"),
    ):
        program(torch.ones(65, 4))


def test_shards_that_do_not_divide_are_named_at_the_first_call(mesh: Any) -> None:
    """The warning is that of a program which is exported at this size; parameters stay where they are."""
    exported = torch.export.export(nn.Linear(4, 4), (torch.ones(8, 4),), dynamic_shapes=({0: Dim.AUTO},))
    shardings = {0: ("data",), "weight": ("model", None)}
    program = sdy.propagate(exported, mesh, in_shardings=shardings).to_torch(mesh)
    with torch.no_grad(), pytest.warns(UserWarning, match="dimension 0 of size 7 does not divide"):
        assert program(torch.ones(7, 4))[0].shape == (7, 4)


def test_static_programs_refuse_other_sizes(mesh: Any) -> None:
    """A larger tensor is not cut in silence."""
    exported = torch.export.export(nn.Linear(4, 4), (torch.ones(8, 4),))
    program = sdy.propagate(exported, mesh, in_shardings={0: ("data",)}).to_torch(mesh)
    with torch.no_grad(), pytest.raises(sdy.OptionError, match=r"the shape \(16, 4\), the program is for \(8, 4\)"):
        program(torch.ones(16, 4))


def test_inputs_are_whole_tensors_of_the_kind_that_was_exported(mesh: Any) -> None:
    """Arrays of numpy, other kinds of numbers and DTensors are refused by name; a narrower float is not."""
    from torch.distributed.tensor import distribute_tensor

    exported = torch.export.export(nn.ReLU(), (torch.ones(8, 4),))
    program = sdy.propagate(exported, mesh, in_shardings={0: ("data",)}).to_torch(mesh)
    assert program(torch.ones(8, 4, dtype=torch.bfloat16))[0].dtype == torch.bfloat16
    for given, message in (
        (torch.ones(8, 4).numpy(), "the input input is a ndarray, and no tensor"),
        (torch.ones(8, 4, dtype=torch.bool), r"is of torch.bool, but the program was traced with torch.float32"),
        (distribute_tensor(torch.ones(8, 4), mesh), "is a DTensor, and the program takes whole tensors"),
    ):
        with pytest.raises(sdy.OptionError, match=message):
            program(given)


class Counting(nn.Module):
    """A buffer that is computed from the input, of whose batch devices have parts."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(8, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(x)
        return self.seen * 2


def test_buffers_stay_where_they_are(mesh: Any) -> None:
    """One that is given whole is whole behind a call, too, as the next call reads it."""
    exported = torch.export.export(Counting(), (torch.ones(8, 4),)).run_decompositions({})
    result = sdy.propagate(exported, mesh, in_shardings={"x": ("data",), "seen": (None, None)})
    program = result.to_torch(mesh)
    for _ in range(2):
        written, _ = program.run_shards(torch.ones(8, 4))
        assert written.shape == (8, 4)


class Branching(nn.Module):
    """A branch whose sizes are dynamic, too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 2 + x.shape[0], lambda x: x - 1, (x,))


def test_branches_have_the_sizes_of_each_call(mesh: Any) -> None:
    """On a mesh of one device a program with control flow computes what the exported one does."""
    alone = dist.device_mesh.DeviceMesh("cpu", [0], mesh_dim_names=("data",))
    exported = torch.export.export(Branching(), (torch.ones(8, 4),), dynamic_shapes=({0: Dim.AUTO},))
    program = sdy.propagate(exported, alone, in_shardings={0: ("data",)}).to_torch(alone)
    with torch.no_grad():
        for x in (torch.ones(6, 4), -torch.ones(1, 4), torch.ones(8, 4)):
            torch.testing.assert_close(program(x)[0], exported.module()(x))
