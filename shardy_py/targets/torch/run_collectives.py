"""Collectives that run where an exchange of shards does not divide."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from shardy_py.ir.graph import Op
from shardy_py.ir.types import static_shape
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.local.regrid import Change


def kinds_run(op: Op, before: TensorSharding | None, after: TensorSharding | None, mesh: Mesh) -> Iterator[str]:
    """Yield the kinds of the collectives that a reshard of an explicit program becomes on devices.

    Where the parts before are not made of those after, or the other way round, a dimension is gathered and cut, as
    `shardy_py.transforms.local.collectives` does; most reshards are one collective.

    Args:
        op: The reshard.
        before: The sharding of its operand.
        after: That of its result.
        mesh: The mesh.
    """
    kind = op.name.removeprefix("sdy.")
    change = _change(op, before, after, mesh)
    if kind == "all_slice":
        yield from _gathers_to_slice(change)
    elif kind == "reduce_scatter" and not _nest(change):
        yield "all_reduce"
        yield from _gathers_to_slice(change)
    elif kind == "all_to_all" and not _nest(change):
        params = op.attributes["params"].params
        sources = {param.src_dim for param in params}
        yield from ("all_gather" for _ in sources)
        gathered = [change.after[dim] if dim in sources else axes for dim, axes in enumerate(change.before)]
        yield from _gathers_to_slice(evolve(change, before=gathered))
    else:
        yield kind


def _gathers_to_slice(change: Change) -> Iterator[str]:
    """Yield the gather of dimensions whose parts are cut otherwise than before."""
    changed = (dim for dim in _changed(change) if len(change.after[dim]) >= len(change.before[dim]))
    if any(change.before[dim] and not change.nests(dim) for dim in changed):
        yield "all_gather"


def _nest(change: Change) -> bool:
    return all(map(change.nests, _changed(change)))


def _changed(change: Change) -> list[int]:
    return [dim for dim, axes in enumerate(change.before) if tuple(axes) != tuple(change.after[dim])]


def _change(op: Op, before: TensorSharding | None, after: TensorSharding | None, mesh: Mesh) -> Change:
    shape = static_shape(op.results[0].type) or ()
    return Change(shape, mesh, _axes(before, len(shape)), _axes(after, len(shape)))


def _axes(sharding: TensorSharding | None, rank: int) -> list[tuple[AxisRef, ...]]:
    return [()] * rank if sharding is None else [tuple(item.axes) for item in sharding.dim_shardings]
