"""Local forms of sorts."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="programs run through XLA")

import shardy_py as sdy
from tests.unit.dialects.stablehlo.local.on_devices import Case, program_of, type_of


def sort(dimension: int) -> Case:
    """Return a sort of a matrix."""
    matrix = type_of((8, 16))
    compare = (
        "{{\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
        "%s = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "stablehlo.return %s : tensor<i1>\n}}"
    )
    return Case(
        f'"stablehlo.sort"(%a) ({compare}) {{{{dimension = {dimension} : i64}}}} : ({matrix}) -> {matrix}', matrix
    )


@pytest.mark.parametrize(("sharding", "gathered"), [('[{"x"}, {"y"}]', 2), ('[{}, {"y"}]', 1), ("[{}, {}]", 0)])
def test_dimensions_may_be_counted_from_the_end(sharding: str, gathered: int) -> None:
    """Where the dimension of a sort along a negative one is sharded, it is gathered."""
    text, _ = program_of([sort(-1), sort(-2)], (8, 16), sharding)
    local = sdy.propagate(text, explicit_collectives=True).local()
    assert [warning.op for warning in local.warnings] == ["stablehlo.sort"] * gathered
