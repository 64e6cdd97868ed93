"""Propagated programs from JAX in the form for GSPMD."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("jax")
import jax

from shardy_py import propagate
from shardy_py.sharding.hlo import HloSharding, to_hlo_sharding
from tests.integration.jax_programs import MESH, PROGRAMS, lower, over


@pytest.mark.parametrize("name", PROGRAMS)
def test_there_and_back(name: str) -> None:
    """The form for GSPMD has nothing of Shardy, and propagates to the same tiles at the interface."""
    result = propagate(lower(name, shardy=True), MESH)
    text = str(result.for_gspmd())
    assert "sdy." not in text
    assert "mhlo.sharding" in text
    assert _tiles(propagate(text)) == _tiles(result) == _tiles(propagate(text, MESH))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_written_sharding_is_one_of_xla(name: str) -> None:
    """XLA reads every sharding that is written, and writes it the same way."""
    from jaxlib.xla_client import HloSharding as XlaSharding

    texts = set(re.findall(r'mhlo\.sharding = "([^"]*)"', str(propagate(lower(name, shardy=True), MESH).for_gspmd())))
    assert texts
    for text in texts:
        assert str(XlaSharding.from_string(text)) == text


def test_arguments_as_jax_says_them() -> None:
    """The shardings of arguments are those JAX writes for their NamedShardings."""
    x, w = over(("y", "x"), None), over(None, "x")
    function = jax.jit(lambda x, w: x @ w, in_shardings=(x, w))
    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((16, 8), (8, 32))]
    module = propagate(function.trace(*shapes).lower(lowering_platforms=("cpu",))).for_gspmd()
    matches = re.findall(r'%arg\d: tensor<\w+> \{mhlo.sharding = "([^"]*)"', str(module))
    assert matches == [str(sharding._to_xla_hlo_sharding(2)) for sharding in (x, w)]


def _tiles(result: Any) -> list[HloSharding]:
    meshes = result.program.meshes
    return [
        HloSharding.replicated() if sharding is None else to_hlo_sharding(sharding, meshes[sharding.mesh])
        for sharding in (*result.arguments, *result.results)
    ]
