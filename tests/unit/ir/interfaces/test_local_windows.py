"""Windows in local forms: what a device needs of a dimension, on virtual devices."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

import shardy_py as sdy  # noqa: E402
from shardy_py.ir import Builder, tensor  # noqa: E402
from shardy_py.testing import run_sharded  # noqa: E402


def blurred(low: int, size: int, *, axes: Any, parts: int, starts: int | None = None) -> Any:
    """Run sums of three rows, the result of which begins somewhere, on virtual devices."""
    image = sdy.Dialect("image")

    def local_blur(op: Any, shard: Any) -> Any:
        rows, count = shard.result_shape()[0], shard.parts(shard.result_shardings[0], 0)
        places = [low + part * rows for part in range(starts or count)]
        return sdy.with_window(shard, 0, 0, places, rows + 2).copy(low=0)

    image.op("image.blur", rule="i j -> i j", permutation="i", any_sizes=True, local=local_blur)
    builder = Builder()
    with builder.function("main", [tensor(11, 2)]) as (x,):
        builder.return_(builder.op("image.blur", [x], [tensor(size, 2)], {"low": low}))

    def blur(x: Any, op: Any) -> Any:
        first, count = op.attributes["low"], op.results[0].shape[0]
        return sum(x[first + step : first + step + count] for step in range(3))

    return run_sharded(
        builder.program,
        {"image.blur": blur},
        {"a": parts, "b": 2},
        in_shardings={0: axes},
        registry=sdy.Registry.of([image]),
    )


@pytest.mark.parametrize(("low", "size"), [(0, 9), (3, 6), (7, 2), (1, 5)])
@pytest.mark.parametrize("parts", [2, 3, 5])
def test_windows_have_the_elements_of_others(low: int, size: int, parts: int) -> None:
    """Each device gets its window, whatever parts the elements come from, along one axis and along two."""
    for axes in (("a", "b"), (("b", "a"), None)):
        run = blurred(low, size, axes=axes, parts=parts)
        assert run.ok, run.difference
        assert "windows" in run.collectives
        assert not run.gathered


def test_what_is_whole_moves_nowhere() -> None:
    """Windows of a dimension that is not sharded need no communication."""
    run = blurred(2, 7, axes=(None, "b"), parts=3)
    assert run.ok, run.difference
    assert "windows" not in run.collectives


def test_there_is_a_window_for_each_part() -> None:
    """Another number of windows than there are parts is an error of the local form, which is named."""
    with pytest.raises(sdy.ShardyError, match=r"5 windows for 3 parts of dimension 0 of the result"):
        blurred(0, 9, axes=("a", None), parts=3, starts=5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 0, [0, 5], 7), "there is no operand 1, the op has 1"),
        ((0, 2, [0, 5], 7), "operand 0 has no dimension 2, its rank is 2"),
        ((0, -1, [0, 5], 7), "operand 0 has no dimension -1, its rank is 2"),
        ((0, 0, [0, 5], -7), "have the size -7"),
        ((0, 0, [0, 2.5], 7), "begin at [0, 2.5]"),
        ((0, 0, [0], 7), "1 windows for 2 parts"),
    ],
)
def test_windows_that_cannot_be(arguments: Any, message: str) -> None:
    """An operand, a dimension, or windows that cannot be are told with the op and the line of the local form."""
    image = sdy.Dialect("image")
    image.op("image.blur", rule="i j -> i j", local=lambda op, shard: sdy.with_window(shard, *arguments).copy())
    builder = Builder(mesh={"a": 2})
    with builder.function("main", [tensor(10, 2)]) as (x,):
        builder.return_(builder.op("image.blur", [x], [tensor(10, 2)]))
    shardings, registry = {0: ("a", None)}, sdy.Registry.of([image])
    with pytest.raises(sdy.ShardyError) as caught:
        run_sharded(builder.program, {"image.blur": np.copy}, in_shardings=shardings, registry=registry)
    assert message in str(caught.value)
    assert "test_local_windows.py" in str(caught.value)
