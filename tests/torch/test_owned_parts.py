"""Updates and look-ups at places in a sharded dimension: each device has what falls into its part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import shardy_py as sdy
from shardy_py.torch.parallel import explicit_program, make_local_torch_program

pytestmark = pytest.mark.torch

PLACES = torch.tensor([7, 0, 3, 4])
"""Places in all parts of a cache of eight rows on four devices."""
ROWS = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(2))
TWICE = torch.tensor([[7, 7, 0], [2, 5, 5]])[..., None].expand(2, 3, 6)
SOME = ROWS[:, :3]
UPDATES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "index_copy": lambda x: x.index_copy(1, PLACES, ROWS),
    "index_copy of one": lambda x: x.index_copy(1, torch.tensor(5), ROWS[:, :1]),
    "index_add": lambda x: x.index_add(1, torch.tensor([7, 7, 0, 2]), ROWS, alpha=0.5),
    "index_reduce": lambda x: x.index_reduce(1, torch.tensor([7, 7, 0, 2]), ROWS, "amax", include_self=False),
    "index_fill": lambda x: x.index_fill(1, PLACES, -1.0),
    "index_fill from the end": lambda x: x.index_fill(1, torch.tensor([-1, 2]), -1.0),
    "index_put": lambda x: torch.ops.aten.index_put(x, [None, PLACES.int()], ROWS),
    "index_put from the end": lambda x: torch.ops.aten.index_put(x, [None, torch.tensor([-1, 0, -8, 3])], ROWS, True),
    "index_put at pairs": lambda x: x.index_put((torch.tensor([0, 1]), torch.tensor([6, 1])), ROWS[0, :2]),
    "scatter": lambda x: x.scatter(1, torch.tensor([[6, 1, 0], [2, 5, 7]])[..., None].expand(2, 3, 6), SOME),
    "scatter of a number": lambda x: x.scatter(1, TWICE, 3.0),
    "scatter_add": lambda x: x.scatter_add(1, TWICE, SOME),
    "scatter_reduce": lambda x: x.scatter_reduce(1, TWICE, SOME, "prod", include_self=False),
    "slice_scatter": lambda x: torch.slice_scatter(x, ROWS, 1, 3, 7),
    "slice_scatter from the end": lambda x: torch.slice_scatter(x, SOME, 1, -5, None, 2),
    "select_scatter": lambda x: torch.select_scatter(x, ROWS[:, 0], 1, -2),
}
LOOK_UPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "index_select": lambda x: x.index_select(1, torch.tensor([7, 0])),
    "index": lambda x: x[:, torch.tensor([[-1], [2]])],
    "index at pairs": lambda x: x[torch.tensor([0, 1]), torch.tensor([6, 1])],
    "index of truth values": lambda x: (x > 0)[:, torch.tensor([7, 1])],
    "gather": lambda x: x.gather(1, TWICE[:, :2]),
    "select": lambda x: x[:, -2],
    "select of a truth value": lambda x: (x > 0).select(1, 5),
    "slice": lambda x: x[:, 1:4],
    "slice with steps": lambda x: x[:, -7::3],
    "take_along_dim": lambda x: torch.take_along_dim(x, TWICE[:, 1:], 1),
    "take_along_dim from the end": lambda x: torch.take_along_dim(x, torch.tensor([[[-1]], [[3]]]), 1),
}


class _Model(torch.nn.Module):
    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: torch.Tensor) -> Any:
        return self.call(x)


def _run(call: Callable[..., Any], x: torch.Tensor) -> tuple[Any, torch.Tensor]:
    """Return the result of a propagation with the rows of a cache on four devices, and what these compute."""
    exported = torch.export.export(_Model(call), (x,)).run_decompositions({})
    shardings = {"x": (None, "rows", None) if x.dim() == 3 else ("rows",)}
    result = sdy.propagate(exported, {"rows": 4}, in_shardings=shardings, keep_uneven_shardings=True)
    local = make_local_torch_program(explicit_program(result.program, result.registry), result.registry, strict=True)
    inputs = [x if item.kind == "input" else exported.constants[item.name] for item in local.origin.arguments]
    return result, local.simulate(*inputs)[0]


GRADIENTS: dict[str, tuple[Callable[[torch.Tensor, int], torch.Tensor], tuple[int, ...]]] = {
    "slice_backward": (lambda g, rows: torch.ops.aten.slice_backward(g, [2, rows, 6], 1, 1, 5, 1), (2, 4, 6)),
    "slice_backward with steps": (
        lambda g, rows: torch.ops.aten.slice_backward(g, [2, rows, 6], 1, -7, 2**63 - 1, 3),
        (2, 3, 6),
    ),
    "slice_backward of nothing": (
        lambda g, rows: torch.ops.aten.slice_backward(g, [2, rows, 6], 1, 5, 3, 1),
        (2, 0, 6),
    ),
    "select_backward": (lambda g, rows: torch.ops.aten.select_backward(g, [2, rows, 6], 1, -2), (2, 6)),
}


@pytest.mark.parametrize("rows", [8, 9], ids=["even", "uneven"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_parts_move_nothing(name: str, rows: int) -> None:
    """Each device has zeros, and what falls into its part, also of a slice of several parts."""
    call, shape = GRADIENTS[name]
    x, gradient = torch.randn(2, rows, 6), torch.randn(shape)

    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
            return x + call(g, rows)

    exported = torch.export.export(Sum(), (x, gradient)).run_decompositions({})
    result = sdy.propagate(exported, {"rows": 4}, in_shardings={"x": (None, "rows", None)}, keep_uneven_shardings=True)
    local = make_local_torch_program(explicit_program(result.program, result.registry), result.registry, strict=True)
    torch.testing.assert_close(local.simulate(x, gradient)[0], x + call(gradient, rows))
    assert not result.redistributions
    assert str(result.sharding("slice_backward" if len(shape) == 3 else "select_backward")) == (
        '<@mesh, [{}, {"rows"}, {}]>'
    )


@pytest.mark.parametrize("rows", [8, 9], ids=["even", "uneven"])
@pytest.mark.parametrize("name", UPDATES)
def test_updates_move_nothing(name: str, rows: int) -> None:
    """The cache stays sharded, and is that of one process."""
    x = torch.randn(2, rows, 6)
    result, got = _run(UPDATES[name], x)
    torch.testing.assert_close(got, UPDATES[name](x))
    assert not result.redistributions
    assert str(result.results[0]) == '<@mesh, [{}, {"rows"}, {}]>'


@pytest.mark.parametrize("rows", [8, 9], ids=["even", "uneven"])
@pytest.mark.parametrize("name", LOOK_UPS)
def test_few_elements_are_summed_instead_of_a_gathered_cache(name: str, rows: int) -> None:
    """Of elements that are no numbers, too."""
    x = torch.randn(2, rows, 6)
    x[0, 0, 0] = float("nan")
    result, got = _run(LOOK_UPS[name], x)
    torch.testing.assert_close(got, LOOK_UPS[name](x), equal_nan=True)
    (moved,) = result.redistributions
    assert moved.kind == "all_reduce"
    assert moved.bytes == got.numel() * got.element_size()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_negative_zeros_are_looked_up_as_such(dtype: torch.dtype) -> None:
    """The zeros of other devices do not make a positive zero of one."""
    x = torch.full((2, 8, 6), -0.0, dtype=dtype)
    result, got = _run(LOOK_UPS["select"], x)
    assert [item.kind for item in result.redistributions] == ["all_reduce"]
    assert got.signbit().all()


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.uint16], ids=str)
def test_numbers_that_are_not_added_are_gathered(dtype: torch.dtype) -> None:
    """PyTorch has no sums of them, as of weights of eight bits."""
    x = torch.arange(96).reshape(2, 8, 6).to(dtype)
    result, got = _run(LOOK_UPS["select"], x)
    assert {item.kind for item in result.redistributions} == {"all_gather"}
    assert torch.equal(got.float(), x.float()[:, -2])


def test_many_elements_are_taken_of_a_gathered_cache() -> None:
    """To sum as many as the cache has would move more."""
    x = torch.randn(2, 8, 6)
    result, got = _run(lambda x: x[:, torch.arange(8).flip(0)], x)
    torch.testing.assert_close(got, x.flip(1))
    assert [item.kind for item in result.redistributions] == ["all_gather"]


WITHOUT_DIMENSIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "index_copy": lambda x: x.index_copy(0, torch.tensor(5), torch.tensor(2.0)),
    "index_copy by a line": lambda x: x.index_copy(0, torch.tensor([5]), torch.tensor(2.0)),
    "scatter": lambda x: x.scatter(0, torch.tensor(5), torch.tensor(2.0)),
    "gather": lambda x: x.gather(0, torch.tensor(5)),
}


@pytest.mark.parametrize("name", WITHOUT_DIMENSIONS)
def test_indices_and_elements_without_dimensions(name: str) -> None:
    """A line may be updated and read by tensors without dimensions."""
    x = torch.randn(9)
    _, got = _run(WITHOUT_DIMENSIONS[name], x)
    torch.testing.assert_close(got, WITHOUT_DIMENSIONS[name](x))


def test_elements_of_the_flat_operand() -> None:
    """Those that are taken along no dimension are taken of a gathered cache."""
    x = torch.randn(2, 8, 6)
    result, got = _run(lambda x: torch.take_along_dim(x, torch.tensor([3, 90, 7])), x)
    torch.testing.assert_close(got, x.flatten()[[3, 90, 7]])
    assert [item.kind for item in result.redistributions] == ["all_gather"]
