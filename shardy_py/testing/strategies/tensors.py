"""Shardings of dimensions and tensors: valid ones, and some that are nearly valid."""

from __future__ import annotations

from hypothesis import strategies as st

from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, ManualAxes, TensorSharding, TensorShardingPerValue
from shardy_py.testing.strategies.axes import axis_lists, axis_refs, merged, names, partitions

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
