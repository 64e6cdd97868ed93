"""Shardings in every form a caller may have."""

from __future__ import annotations

from typing import Any

import pytest

from shardy_py.api.specs import as_sharding, mesh_of_spec, parse_spec
from shardy_py.errors import OptionError, ParseError
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import OPEN, DimensionSharding, TensorSharding

MESH = Mesh.of(a=2, b=2, c=2)


def convert(spec: Any, rank: int = 2) -> str:
    """Return the text of a spec as a sharding."""
    return str(as_sharding(spec, rank=rank, mesh_name="mesh", mesh=MESH))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (("a", None), '<@mesh, [{"a"}, {}]>'),
        ((), "<@mesh, [{}, {}]>"),
        (("a",), '<@mesh, [{"a"}, {}]>'),
        ([("a", "b"), "c"], '<@mesh, [{"a", "b"}, {"c"}]>'),
        (((), "c"), '<@mesh, [{}, {"c"}]>'),
        ((OPEN, DimensionSharding(priority=1)), "<@mesh, [{?}, {}p1]>"),
        ('[{"a"}, {?}]', '<@mesh, [{"a"}, {?}]>'),
        ('<@other, [{"a"}, {?}]>', '<@other, [{"a"}, {?}]>'),
        ('#sdy.sharding<@mesh, [{"a":(1)2}, {}], replicated={"b"}>', '<@mesh, [{"a":(1)2}, {}], replicated={"b"}>'),
        (TensorSharding.fully_open("m", 1), "<@m, [{?}]>"),
    ],
)
def test_forms(spec: Any, expected: str) -> None:
    """Each form gives the sharding it stands for; dimensions left out are closed."""
    assert convert(spec) == expected


def test_partition_specs_of_jax() -> None:
    """A PartitionSpec means what JAX means by it, unconstrained dimensions and unreduced axes included."""
    jax = pytest.importorskip("jax")
    spec = jax.sharding.PartitionSpec("a", jax.sharding.PartitionSpec.UNCONSTRAINED, unreduced={"c", "b"})
    assert convert(spec) == '<@mesh, [{"a"}, {?}], unreduced={"b", "c"}>'


def test_named_shardings_of_jax() -> None:
    """A NamedSharding gives its PartitionSpec, and its mesh besides."""
    jax = pytest.importorskip("jax")
    mesh = jax.sharding.AbstractMesh((2, 2), ("a", "b"))
    spec = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, ("a", "b")))
    assert convert(spec) == '<@mesh, [{}, {"a", "b"}]>'
    assert mesh_of_spec(spec) == Mesh.of(a=2, b=2)
    assert mesh_of_spec(("a",)) is None


@pytest.mark.parametrize("spec", [3, (3,), (("a", 3),), {"a": 1}, {"a"}])
def test_anything_else_is_refused(spec: Any) -> None:
    """What is no sharding is an error that says what is."""
    with pytest.raises(OptionError, match="PartitionSpec"):
        convert(spec)


@pytest.mark.parametrize("text", ['[{"a"}', '#sdy.mesh<["a"=2]>', "<oops>"])
def test_text_that_does_not_parse(text: str) -> None:
    """Text that is not a tensor sharding is a parse error."""
    with pytest.raises(ParseError):
        convert(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data,None", ("data", None)),
        ("None", (None,)),
        ("", ()),
        ("(a, b),None,c", (("a", "b"), None, "c")),
        ('[{"a"}, {?}]', '[{"a"}, {?}]'),
        ("<@mesh, []>", "<@mesh, []>"),
    ],
)
def test_parse_spec(text: str, expected: Any) -> None:
    """The command line takes a list of entries, or Shardy's own text."""
    assert parse_spec(text) == expected


@pytest.mark.parametrize("text", ["(a,b", "a)", "((a),b)"])
def test_parse_spec_checks_parentheses(text: str) -> None:
    """Parentheses that do not match are an error."""
    with pytest.raises(ParseError, match="parentheses"):
        parse_spec(text)
