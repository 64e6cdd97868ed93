"""Programs from JAX that were lowered without the Shardy partitioner propagate as those lowered with it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax")

from shardy_py import propagate
from shardy_py.sharding.hlo import HloSharding, to_hlo_sharding
from tests.integration.jax_programs import MESH, PROGRAMS, lower, over


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_module_over_the_same_mesh(name: str) -> None:
    """Over the mesh of the program, the whole propagated module is the same as with the Shardy partitioner."""
    expected = propagate(lower(name, shardy=True), MESH, like="passes")
    assert str(propagate(lower(name, shardy=False), MESH)) == str(expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_tiles_over_a_derived_mesh(name: str) -> None:
    """Without a mesh one is derived, over which arguments and results have the same tiles."""
    expected, result = propagate(lower(name, shardy=True), MESH, like="passes"), propagate(lower(name, shardy=False))
    assert _tiles(result) == _tiles(expected)


def test_out_shardings_of_jax() -> None:
    """A sharding that JAX wants for a result is on the result."""
    options = {"out_shardings": over(("y", "x"))}
    result = propagate(lower("replicated", shardy=False, **options), MESH)
    assert str(result.results[0]) == '<@mesh, [{"y", "x"}, {}]>'
    assert str(result) == str(propagate(lower("replicated", shardy=True, **options), MESH, like="passes"))


def _tiles(result: Any) -> list[HloSharding]:
    meshes = result.program.meshes
    return [
        HloSharding.replicated() if sharding is None else to_hlo_sharding(sharding, meshes[sharding.mesh])
        for sharding in (*result.arguments, *result.results)
    ]
