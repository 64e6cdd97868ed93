"""tensor.scatter on virtual devices: places are whole, all dimensions but the scattered ones pass."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="MLIR reads the ops")
np = pytest.importorskip("numpy")

from shardy_py.testing import assert_runs_sharded  # noqa: E402


def scatter(source: Any, target: Any, places: Any, op: Any) -> Any:
    """Write columns, with or without the dimension of size 1 that they are scattered along."""
    result = target.copy()
    for number, (place,) in enumerate(places):
        result[:, place % target.shape[1]] = source[number].reshape(len(target))
    return result


def program(source: str) -> str:
    """Return a program that scatters three columns."""
    types = f"tensor<{source}xf32>, tensor<7x6xf32>, tensor<3x1xindex>"
    arguments = f"%x: tensor<{source}xf32>, %y: tensor<7x6xf32>, %at: tensor<3x1xindex>"
    return f"""func.func @main({arguments}) -> tensor<7x6xf32> {{
      %0 = tensor.scatter %x into %y[%at] scatter_dims([1]) unique : ({types}) -> tensor<7x6xf32>
      return %0 : tensor<7x6xf32>
    }}"""


@pytest.mark.parametrize("source", ["3x7x1", "3x7"])
def test_rows_stay_on_their_devices(source: str) -> None:
    """Rows in uneven parts are scattered into without communication."""
    functions = {"tensor.scatter": scatter}
    run = assert_runs_sharded(program(source), functions, {"d": 2}, in_shardings={1: ("d", None)})
    assert not run.collectives


@pytest.mark.parametrize("shardings", [{1: (None, "d")}, {0: ("d", None)}, {2: ("d", None)}])
def test_places_and_what_is_looked_up_are_whole(shardings: Any) -> None:
    """Columns and the number of places are gathered."""
    run = assert_runs_sharded(program("3x7"), {"tensor.scatter": scatter}, {"d": 3}, in_shardings=shardings)
    assert set(run.collectives) == {"all_gather"}
