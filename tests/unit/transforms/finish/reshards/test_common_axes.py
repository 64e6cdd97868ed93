"""Common axes shard every factor alike, without strided views, and favour large tensors."""

from hypothesis import given, settings
from hypothesis import strategies as st

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import any_overlap
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_op_sharding_rule, parse_tensor_sharding
from shardy_py.sharding.projection import distribute_axes
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.transforms.finish.reshards.common_axes import find_common_axes
from shardy_py.transforms.finish.reshards.projection import OpProjection, compatible_axes

MESH = Mesh.of(x=2, y=2, z=4)
MATMUL = parse_op_sharding_rule("<([i, k], [k, j])->([i, j]) {i=8, j=8, k=8} reduction={k}>")
SPLIT = parse_op_sharding_rule("<([ij], [j])->([i, j]) {i=4, j=8}>")


def axes_of(rule, texts, sizes=None, mesh=MESH):
    """Return the common axes of shardings given by their dimensions, one text per factor."""
    shardings = [parse_tensor_sharding(f"<@mesh, {text}>") for text in texts]
    actual = find_common_axes(OpProjection.build(rule, shardings, mesh), sizes or [64] * len(texts))
    return ["".join(str(axis).replace('"', "") for axis in axes) for axes in actual]


def test_the_axes_of_the_largest_tensors_win():
    """What is counted is the number of elements whose tensors have the axes already."""
    texts = ['[{"x"}, {}]', '[{}, {"x"}]', "[{}, {}]"]
    assert axes_of(MATMUL, texts, [64, 128, 64]) == ["", "x", ""]
    assert axes_of(MATMUL, texts, [128, 64, 64]) == ["x", "", ""]


def test_pass_through_wins_over_reduction_for_equal_sizes():
    """Between tensors of one size, an axis rather shards a dimension that needs no all-reduce."""
    assert axes_of(MATMUL, ['[{"x"}, {}]', '[{"x"}, {}]', "[{}, {}]"]) == ["x", "", ""]


def test_longer_axes_extend_shorter_ones():
    """A candidate that continues what is assigned is taken next, as far as its axes are free."""
    texts = ['[{"x"}, {}]', '[{}, {"y"}]', '[{"x", "y", "z"}, {}]']
    assert axes_of(MATMUL, texts) == ["xyz", "", ""]
    assert axes_of(MATMUL, texts, [64, 512, 64]) == ["x", "y", ""]


def test_a_minor_factor_waits_until_the_major_one_is_full():
    """As long as the major factor of a dimension is not fully sharded, sharding the minor one is a strided view."""
    assert axes_of(SPLIT, ["[{}]", '[{"x"}]', "[{}, {}]"]) == ["", ""]
    assert axes_of(SPLIT, ['[{"z"}]', '[{"x"}]', "[{}, {}]"]) == ["z", "x"]


def dimensions(count):
    """Draw dimension shardings without an axis used twice."""
    axes = st.permutations([AxisRef("x"), AxisRef("y"), AxisRef("z")])
    cuts = st.lists(st.integers(0, 3), min_size=count, max_size=count).map(sorted)
    return st.tuples(axes, cuts).map(
        lambda drawn: tuple(
            DimensionSharding(tuple(drawn[0][start:end])) for start, end in zip([0, *drawn[1]], drawn[1], strict=False)
        )
    )


@settings(max_examples=60, deadline=None)
@given(dims=st.tuples(dimensions(2), dimensions(2), dimensions(2)), sizes=st.tuples(*[st.integers(0, 99)] * 3))
def test_common_axes_are_compatible(dims, sizes):
    """Whatever the shardings, the op has no conflict once all tensors are sharded by the common axes."""
    shardings = [TensorSharding("mesh", item) for item in dims]
    projection = OpProjection.build(MATMUL, shardings, MESH)
    common = find_common_axes(projection, sizes)
    for factor, axes in enumerate(common):
        projection.update(factor, axes)
    assert compatible_axes(projection) == common
    assert not any_overlap(common[0], common[1] + common[2])
    rebuilt = OpProjection.build(MATMUL, [projection.sharding(number, "mesh") for number in range(3)], MESH)
    assert compatible_axes(rebuilt) == common


@given(sizes=st.lists(st.integers(0, 12), max_size=4), names=st.permutations(["x", "y", "z"]))
def test_distributed_axes_divide_their_factors(sizes, names):
    """Every axis is handed out once, whole or in parts, and the parts of a factor divide its size."""
    axes = [AxisRef(name) for name in names]
    taken, rest = distribute_axes(axes, sizes, MESH)
    total = 1
    for size, factor_axes in zip(sizes, taken, strict=True):
        parts = 1
        for axis in factor_axes:
            parts *= axis.size(MESH)
        assert parts == 1 or size % parts == 0
        total *= parts
    for axis in rest:
        total *= axis.size(MESH)
    assert total == MESH.total_size
    assert not any_overlap(rest, [axis for factor_axes in taken for axis in factor_axes])
