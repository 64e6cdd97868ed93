"""Hypothesis strategies for the vocabulary: valid values, and values that are nearly valid."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from shardy_py.sharding.axes import AxisRef, SubAxis, add_axis_or_merge, make_axis
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.rule import OpShardingRule, TensorMapping
from shardy_py.sharding.tensor import DimensionSharding, ManualAxes, TensorSharding, TensorShardingPerValue

AXIS_SIZES = (1, 2, 3, 4, 6, 8, 12)
PLAIN_NAMES = ("x", "y", "z", "data", "model")

plain_names = st.sampled_from(PLAIN_NAMES)
names = st.one_of(plain_names, st.text(min_size=1, max_size=6))
"""Axis and mesh names, some of which have to be quoted or escaped."""


def divisors(number: int) -> list[int]:
    """Return the divisors of a number, smallest first."""
    return [value for value in range(1, number + 1) if number % value == 0]


@st.composite
def meshes(
    draw: st.DrawFn, *, max_axes: int = 3, max_devices: int = 96, axis_names: st.SearchStrategy[str] = plain_names
) -> Mesh:
    """Draw a mesh with axes, sometimes with its devices in another order."""
    chosen = draw(st.lists(axis_names, min_size=1, max_size=max_axes, unique=True))
    axes: list[MeshAxis] = []
    room = max_devices
    for name in chosen:
        axes.append(MeshAxis(name, draw(st.sampled_from([size for size in AXIS_SIZES if size <= room]))))
        room //= axes[-1].size
    mesh = Mesh(tuple(axes))
    if not draw(st.booleans()):
        return mesh
    return Mesh(mesh.axes, tuple(draw(st.permutations(range(mesh.total_size)))))


special_meshes = st.one_of(st.just(Mesh()), st.integers(0, 99).map(lambda device: Mesh((), (device,))))
"""The empty mesh and maximal meshes."""


@st.composite
def axis_refs(draw: st.DrawFn, mesh: Mesh) -> AxisRef:
    """Draw any valid axis or sub-axis of a mesh."""
    axis = draw(st.sampled_from([item for item in mesh.axes if item.size > 1] or list(mesh.axes)))
    if axis.size == 1:
        return AxisRef(axis.name)
    end = draw(st.sampled_from([value for value in divisors(axis.size) if value > 1]))
    start = draw(st.sampled_from([value for value in divisors(end) if value < end]))
    return make_axis(axis.name, start, end // start, mesh)


@st.composite
def factorisations(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """Draw a chain of divisors from 1 to a size, each a divisor of the next."""
    chain = [1]
    while chain[-1] != size:
        chain.append(draw(st.sampled_from([v for v in divisors(size) if v > chain[-1] and v % chain[-1] == 0])))
    return tuple(chain)


@st.composite
def partitions(draw: st.DrawFn, mesh: Mesh) -> list[AxisRef]:
    """Draw all axes of a mesh, split into sub-axes, in any order: they coexist and do not overlap."""
    parts: list[AxisRef] = []
    for axis in mesh.axes:
        chain = draw(factorisations(axis.size)) if axis.size > 1 else ()
        parts += [make_axis(axis.name, pre, end // pre, mesh) for pre, end in pairwise(chain)]
    return list(draw(st.permutations(parts)))


@st.composite
def coexisting_pairs(draw: st.DrawFn, mesh: Mesh) -> tuple[AxisRef, AxisRef]:
    """Draw two axes of the same name that coexist; they may overlap."""
    axis = draw(st.sampled_from([item for item in mesh.axes if item.size > 1]))
    chain = draw(factorisations(axis.size))

    def part() -> AxisRef:
        start, end = sorted(draw(st.lists(st.sampled_from(chain), min_size=2, max_size=2, unique=True)))
        return make_axis(axis.name, start, end // start, mesh)

    return part(), part()


def merged(axes: list[AxisRef], mesh: Mesh) -> tuple[AxisRef, ...]:
    """Return a list of axes in the same order with consecutive sub-axes merged."""
    result: list[AxisRef] = []
    for axis in axes:
        add_axis_or_merge(result, axis, mesh)
    return tuple(result)


@st.composite
def axis_lists(draw: st.DrawFn, mesh: Mesh) -> tuple[AxisRef, ...]:
    """Draw a valid list of axes, major to minor, as a dimension sharding has it."""
    parts = draw(partitions(mesh))
    return merged(parts[: draw(st.integers(0, len(parts)))], mesh)


priorities = st.one_of(st.none(), st.integers(0, 3))


@st.composite
def _dim(draw: st.DrawFn, axes: tuple[AxisRef, ...]) -> DimensionSharding:
    is_closed = draw(st.booleans())
    return DimensionSharding(axes, is_closed, draw(priorities) if axes or not is_closed else None)


@st.composite
def dim_shardings(draw: st.DrawFn, mesh: Mesh) -> DimensionSharding:
    """Draw a valid dimension sharding."""
    return draw(_dim(draw(axis_lists(mesh))))


@st.composite
def tensor_shardings(
    draw: st.DrawFn, mesh: Mesh, *, mesh_name: str | Mesh = "mesh", rank: int | None = None, reductions: bool = False
) -> TensorSharding:
    """Draw a valid tensor sharding; with ``reductions`` sometimes reduced by another op than sum."""
    if rank is None:
        rank = draw(st.integers(0, 3))
    groups: list[list[AxisRef]] = [[] for _ in range(rank + 3)]
    for part in draw(partitions(mesh)):
        groups[draw(st.integers(0, rank + 2))].append(part)
    replicated, unreduced = (merged(sorted(group, key=mesh.sort_key), mesh) for group in groups[rank : rank + 2])
    return TensorSharding(
        mesh_name,
        tuple(draw(_dim(merged(group, mesh))) for group in groups[:rank]),
        replicated,
        unreduced,
        draw(st.sampled_from(["sum", "max", "min"])) if reductions and unreduced else "sum",
    )


@st.composite
def sloppy_tensor_shardings(draw: st.DrawFn, mesh: Mesh, *, rank: int) -> TensorSharding:
    """Draw a tensor sharding that may break any invariant but the rank and the names of sorted axes."""
    sub_axes = st.builds(SubAxis, st.sampled_from((-1, 0, 1, 2, 3, 4)), st.sampled_from((0, 1, 2, 3, 4, 6)))
    refs = st.one_of(
        axis_refs(mesh),
        st.builds(AxisRef, st.sampled_from([axis.name for axis in mesh.axes]), st.none() | sub_axes),
    )
    lists = st.lists(refs, max_size=2).map(tuple)
    loose = st.lists(refs | st.just(AxisRef("unknown")), max_size=3).map(tuple)
    dims = tuple(draw(st.builds(DimensionSharding, loose, st.booleans(), priorities)) for _ in range(rank))
    return TensorSharding("mesh", dims, draw(lists), draw(lists))


@st.composite
def shardings_per_value(draw: st.DrawFn, mesh: Mesh) -> TensorShardingPerValue:
    """Draw the shardings of up to three values."""
    return TensorShardingPerValue(tuple(draw(st.lists(tensor_shardings(mesh), max_size=3))))


manual_axes = st.lists(names, max_size=3, unique=True).map(lambda items: ManualAxes(tuple(items)))


@st.composite
def _mapping(draw: st.DrawFn, sizes: list[int], factors: list[int]) -> TensorMapping:
    dims: list[list[int]] = []
    for factor in draw(st.permutations(factors)):
        joins = dims and sizes[factor] > 1 and sizes[dims[-1][-1]] > 1 and draw(st.booleans())
        if joins:
            dims[-1].append(factor)
        else:
            dims.append([factor])
    return tuple(tuple(dim) for dim in dims)


@st.composite
def op_sharding_rules(draw: st.DrawFn, *, max_factors: int = 22) -> OpShardingRule:
    """Draw a valid rule; some have more factors than there are single letters."""
    count = draw(st.one_of(st.integers(0, 4), st.integers(0, max_factors)))
    sizes = [draw(st.sampled_from((1, 2, 3, 4, 8))) for _ in range(count)]
    reduced = draw(st.sets(st.integers(0, count - 1), max_size=2)) if count else set()
    others = [factor for factor in range(count) if factor not in reduced]

    def some(factors: list[int]) -> list[int]:
        return [factor for factor in factors if draw(st.booleans())]

    operands = [draw(_mapping(sizes, list(range(count))))]
    operands += [draw(_mapping(sizes, some(list(range(count))))) for _ in range(draw(st.integers(0, 2)))]
    results = [draw(_mapping(sizes, some(others))) for _ in range(draw(st.integers(1, 2)))]
    kinds: dict[str, Any] = {"need_replication": [], "permutation": [], "none": []}
    for factor in others:
        kinds[draw(st.sampled_from(sorted(kinds)))].append(factor)
    return OpShardingRule(
        tuple(sizes),
        tuple(operands),
        tuple(results),
        tuple(sorted(reduced)),
        tuple(kinds["need_replication"]),
        tuple(kinds["permutation"]),
        tuple(some(list(range(count)))),
        draw(st.booleans()),
    )


@st.composite
def sloppy_op_sharding_rules(draw: st.DrawFn) -> OpShardingRule:
    """Draw a rule that may break any invariant."""
    factors = st.integers(0, 3)
    dims = st.lists(factors, max_size=2).map(tuple)
    mappings = st.lists(st.lists(dims, max_size=2).map(tuple), min_size=1, max_size=2).map(tuple)
    special = st.lists(factors, max_size=2).map(tuple)
    return OpShardingRule(
        tuple(draw(st.lists(st.sampled_from((1, 2, 4)), max_size=3))),
        draw(mappings),
        draw(mappings),
        draw(special),
        draw(special),
        draw(special),
        draw(special),
        draw(st.booleans()),
    )


def rule_shapes(rule: OpShardingRule) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return shapes of operands and results that fit a rule, size 1 where it names unknown factors."""

    def shape(mapping: TensorMapping) -> tuple[int, ...]:
        sizes = dict(enumerate(rule.factor_sizes))
        result = []
        for dim in mapping:
            size = 1
            for factor in dim:
                size *= sizes.get(factor, 1)
            result.append(size)
        return tuple(result)

    return [shape(item) for item in rule.operand_mappings], [shape(item) for item in rule.result_mappings]
