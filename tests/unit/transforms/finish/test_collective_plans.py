"""Which collectives lead from one sharding to another."""

import random
from math import prod

import pytest

from shardy_py.sharding import AxisRef, DimensionSharding, Mesh, SubAxis, TensorSharding, parse_tensor_sharding
from shardy_py.transforms.finish.collectives.plan import Collective, is_valid, plan_collectives

MESH = Mesh.of(x=2, y=2, z=4, w=2)


def sharding(dims: str, mesh: str = "mesh") -> TensorSharding:
    """Return a sharding from its dimensions."""
    return parse_tensor_sharding(f"<@{mesh}, {dims}>")


def collectives(*args) -> tuple[Collective, ...]:
    """Return a plan that must exist."""
    actual = plan_collectives(*args)
    assert actual is not None
    return actual


def plan(source: str, target: str, *, shape=(16, 16, 16), mesh: str = "mesh") -> list[str]:
    """Return what is done, in order: the collective, its axes, and the dimensions after it."""
    first, last = sharding(source), sharding(target, mesh)
    actual = collectives(first, last, shape[: first.rank], MESH)
    return [
        " ".join(filter(None, [item.name.removeprefix("sdy."), str(item.value or ""), _dims(item.out_sharding)]))
        for item in actual
    ]


def _dims(value: TensorSharding) -> str:
    return "[" + ", ".join(str(dim) for dim in value.dim_shardings) + "]"


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ('[{"x"}, {}]', '[{"x"}, {}]', []),
        ('[{"x", ?}, {?}]', '[{"x"}, {}]', []),
        ('[{"x"}, {}]', '[{"x", "y"}, {"w"}]', ['all_slice [{"y"}, {"w"}] [{"x", "y"}, {"w"}]']),
        ('[{"x", "y"}, {"w"}]', '[{"x"}, {}]', ['all_gather [{"y"}, {"w"}] [{"x"}, {}]']),
        ('[{"x"}, {}]', '[{}, {"x"}]', ['all_to_all [{"x"}: 0->1] [{}, {"x"}]']),
        ('[{"x"}, {}]', '[{"y"}, {}]', ['collective_permute [{"y"}, {}]']),
        ('[{"z"}, {}]', '[{"z":(1)2}, {}]', ['all_gather [{"z":(2)2}, {}] [{"z":(1)2}, {}]']),
        ('[{"z":(1)2}, {}]', '[{"z"}, {}]', ['all_slice [{"z":(2)2}, {}] [{"z"}, {}]']),
        ('[{"x", "y"}, {}]', '[{"y", "x"}, {}]', ['collective_permute [{"y", "x"}, {}]']),
        # Axes to be gathered go to the front, so that the other can move away first.
        (
            '[{"x", "y"}, {}]',
            '[{}, {"x"}]',
            [
                'collective_permute [{"y", "x"}, {}]',
                'all_to_all [{"x"}: 0->1] [{"y"}, {"x"}]',
                'all_gather [{"y"}, {}] [{}, {"x"}]',
            ],
        ),
        # Free axes are sliced where the axes before them are, and move along with those.
        (
            '[{"x"}, {}]',
            '[{}, {"x", "y"}]',
            ['all_slice [{"y"}, {}] [{"x", "y"}, {}]', 'all_to_all [{"x", "y"}: 0->1] [{}, {"x", "y"}]'],
        ),
        # Two dimensions into one: the order of the moves is that of the axes.
        (
            '[{"y"}, {"x"}, {}]',
            '[{}, {}, {"x", "y"}]',
            ['all_to_all [{"x"}: 1->2] [{"y"}, {}, {"x"}]', 'all_to_all [{"y"}: 0->2] [{}, {}, {"x", "y"}]'],
        ),
        # A larger axis is split where only part of it is needed.
        ('[{"z"}, {}]', '[{"x", "y"}, {}]', ['collective_permute [{"x", "y"}, {}]']),
    ],
)
def test_plans(source, target, expected):
    """Slices come first, then permutes, all-to-alls, gathers; each only where it is needed."""
    assert plan(source, target) == expected


def test_a_slice_for_a_later_all_to_all_must_divide_the_dimension():
    """Where the source dimension is too small for all the axes, the target dimension is sliced at the end."""
    actual = plan('[{"x"}, {}]', '[{}, {"x", "y"}]', shape=(2, 16))
    assert actual[0] == 'all_slice [{}, {"y"}] [{"x"}, {"y"}]'


def test_another_order_of_devices_takes_a_permute():
    """The permute changes the mesh, and nothing else unless something else has to change."""
    actual = collectives(sharding('[{"x"}]'), sharding('[{"x"}]', "rotated"), (16,), MESH)
    assert [(item.name, str(item.out_sharding)) for item in actual] == [
        ("sdy.collective_permute", '<@rotated, [{"x"}]>')
    ]


def test_unreduced_axes_are_those_of_the_target():
    """Every collective keeps the axes the tensor is unreduced on."""
    source, target = (parse_tensor_sharding(f'<@mesh, {dims}, unreduced={{"w"}}>') for dims in ('[{"x"}]', '[{"y"}]'))
    actual = collectives(source, target, (16,), MESH)
    assert [str(item.out_sharding) for item in actual] == ['<@mesh, [{"y"}], unreduced={"w"}>']


def test_sharded_axes_cannot_become_unreduced():
    """There is no plan where the target has an axis unreduced that still shards the tensor on the way."""
    source = parse_tensor_sharding('<@mesh, [{"x"}, {"y"}]>')
    target = parse_tensor_sharding('<@mesh, [{"y"}, {}], unreduced={"x"}>')
    assert plan_collectives(source, target, (16, 16), MESH) is None


def test_where_the_search_loses_its_way_a_plain_plan_takes_over():
    """Sub-axes that cannot coexist are gathered before the others are sliced."""
    mesh = Mesh.of(x=6, y=6, z=6)
    source, target = (
        sharding('[{"x":(2)3}, {"z":(3)2}, {"x":(1)2, "y"}]'),
        sharding('[{}, {"z":(1)2}, {"z":(2)3, "y"}]'),
    )
    actual = collectives(source, target, (12, 8, 144), mesh)
    assert [item.name for item in actual] == ["sdy.all_gather", "sdy.all_slice"]
    assert actual[-1].out_sharding == target


def random_sharding(rng: random.Random, mesh: Mesh, rank: int) -> TensorSharding:
    """Return a sharding by some axes of a mesh, whole or in halves."""
    parts: list[AxisRef] = []
    for axis in mesh.axes:
        halves = [AxisRef(axis.name, SubAxis(1, 2)), AxisRef(axis.name, SubAxis(2, axis.size // 2))]
        parts += halves if axis.size > 2 and rng.random() < 0.4 else [AxisRef(axis.name)]
    rng.shuffle(parts)
    dims: list[list[AxisRef]] = [[] for _ in range(rank)]
    for part in parts[: rng.randint(0, len(parts))]:
        dim = rng.choice(dims)
        if dim and dim[-1].can_merge(part):
            dim[-1] = dim[-1].merge(part, mesh)
        else:
            dim.append(part)
    return TensorSharding("mesh", tuple(DimensionSharding(tuple(dim)) for dim in dims))


@pytest.mark.parametrize("sizes", [(2, 4, 2, 8), (2, 6, 4, 2), (6, 4, 10, 2)])
def test_every_plan_is_valid_and_ends_at_the_target(sizes):
    """Whatever the shardings, each collective fits its operand; with powers of two the last gives the target."""
    rng = random.Random(0)
    mesh = Mesh.of(dict(zip("xyzw", sizes, strict=True)))
    for _ in range(150):
        rank = rng.randint(1, 4)
        source, target = (random_sharding(rng, mesh, rank) for _ in range(2))
        actual = collectives(source, target, (prod(sizes),) * rank, mesh)
        assert is_valid(source, actual, mesh), (source, target)
        if all(size & (size - 1) == 0 for size in sizes):
            assert target.is_equivalent(actual[-1].out_sharding if actual else source)
