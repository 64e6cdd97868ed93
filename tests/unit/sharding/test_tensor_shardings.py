"""Tensor shardings: equivalence, local shapes, text, and the shardings of manual computations."""

import pytest

from shardy_py.sharding import Mesh, TensorSharding, parse_tensor_sharding
from shardy_py.sharding.manual_axes import add_free_axes, common_mesh, erase_free_axes, erase_manual_axes
from shardy_py.sharding.tensor import symbol

MESH = Mesh.of(x=2, y=4, z=2)


def sharding(body: str, mesh: str = "@mesh") -> TensorSharding:
    """Parse what follows the name of the mesh."""
    return parse_tensor_sharding(f"<{mesh}, {body}>")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ('[{"x"}]', '[{"x", ?}p1]', True),
        ('[{"x"}]', '[{"y"}]', False),
        ('[{"x"}]', '[{"x"}], replicated={"y"}', True),
        ('[{"x"}]', '[{"x"}], unreduced={"y"}', False),
        ("[{}]", "[{?}]", True),
        ("[{}]", '[{}], unreduced={"y"}', False),
        ('[{"x"}]', "[{}]", False),
    ],
)
def test_equivalence_is_the_same_data_on_every_device(first: str, second: str, expected: bool) -> None:
    """Open, closed, priorities and replicated axes do not matter; sharded and unreduced axes do."""
    assert sharding(first).is_equivalent(sharding(second)) is expected
    assert sharding(second).is_equivalent(sharding(first)) is expected


def test_equivalence_without_unreduced_axes_compares_the_dimensions() -> None:
    """On request unreduced axes are left out of the comparison."""
    partial = sharding('[{}], unreduced={"y"}')
    assert partial.is_equivalent(sharding("[{}]"), ignore_unreduced_axes=True)
    assert partial.is_equivalent(None, ignore_unreduced_axes=True)
    assert not partial.is_equivalent(None)


def test_no_sharding_is_equivalent_to_a_fully_replicated_one() -> None:
    """A missing sharding stands for one without axes."""
    assert sharding("[{?}, {}]").is_equivalent(None)
    assert not sharding('[{"x"}]').is_equivalent(None)


def test_fully_replicated_does_not_ask_for_unreduced_axes() -> None:
    """Only sharded dimensions count, as in the reference."""
    assert sharding('[{}], unreduced={"y"}').is_fully_replicated
    assert not sharding('[{"x"}]').is_fully_replicated


def test_local_shape_rounds_up_and_keeps_dynamic_sizes() -> None:
    """Each device holds the ceiling of the size divided by the number of parts."""
    assert sharding('[{"x", "y"}, {"z"}, {"y":(1)2}]').local_shape((12, None, 8), MESH) == (2, None, 4)


def test_opening_keeps_replicated_axes_and_closing_drops_them() -> None:
    """A closed copy has no replicated axes, which could no longer matter."""
    value = sharding('[{"x", ?}p1, {}], replicated={"y"}, unreduced={"z"}')
    assert str(value.closed_like()) == '<@mesh, [{"x"}p1, {}], unreduced={"z"}>'
    assert str(value.open_like()) == '<@mesh, [{"x", ?}p1, {?}], replicated={"y"}, unreduced={"z"}>'
    assert value.closed_like().is_fully_closed
    assert str(value.with_whole_dims([0])) == '<@mesh, [{}, {}], replicated={"y"}, unreduced={"z"}>'


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mesh", "@mesh"),
        ("_a.b$c", "@_a.b$c"),
        ("$a", '@"$a"'),
        (".a", '@".a"'),
        ("1a", '@"1a"'),
        ("my mesh", '@"my mesh"'),
        ("a-b", '@"a-b"'),
        ("", '@""'),
        ("é", r'@"\C3\A9"'),
    ],
)
def test_symbols_are_quoted_as_mlir_does(name: str, expected: str) -> None:
    """A symbol is bare if it is a letter or underscore, then letters, digits, $, _ and dots."""
    assert symbol(name) == expected
    assert parse_tensor_sharding(f"<{expected}, []>").mesh == name


def test_manual_and_free_axes_come_apart_and_together() -> None:
    """The body sees the free axes; new free axes go behind the manual ones outside."""
    outer = sharding('[{"x", "y", ?}p1, {"z"}], replicated={"w"}')
    inner = erase_manual_axes(outer, ("x", "w"))
    assert str(inner) == '<@mesh, [{"y", ?}p1, {"z"}]>'
    assert str(erase_free_axes(outer, ("x",))) == '<@mesh, [{"x", ?}p1, {}], replicated={"w"}>'
    new = sharding('[{"y", "v"}, {"z", ?}p2]')
    assert str(add_free_axes(outer, new, ("x",))) == '<@mesh, [{"x", "y", "v"}, {"z", ?}p2], replicated={"w"}>'
    assert erase_manual_axes(outer, ()) is outer


def test_the_common_mesh_ignores_empty_meshes() -> None:
    """Shardings have a mesh in common if all but those on empty meshes agree."""
    axes = Mesh.of(x=2).axes
    meshes = {"a": Mesh(axes), "same": Mesh(axes), "swapped": Mesh(axes, (1, 0)), "empty": Mesh(), "b": Mesh.of(y=2)}

    def common(*names: str | None, ignore: bool = False) -> object:
        shardings = [None if name is None else TensorSharding(name) for name in names]
        return common_mesh(shardings, meshes, ignore_device_ids=ignore)

    assert common("empty", None, "a", "same") == "a"
    assert common("a", "b") is None
    assert common("a", "swapped") is None
    assert common("swapped", "a", ignore=True) == "a"
    assert common("empty") == "empty"
    assert common("missing") is None
    assert common() is None
