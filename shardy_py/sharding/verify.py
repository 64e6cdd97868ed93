"""Verify meshes and tensor shardings: each broken invariant is a diagnostic.

Codes are stable. All problems are collected, except those that only follow from one already found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any

from shardy_py.errors import Diagnostic
from shardy_py.sharding.axes import AxisRef, SubAxis, quote
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding, TensorShardingPerValue, symbol
from shardy_py.support.arguments import as_integer, shown


class NoShape(Enum):
    """Reasons why a value has no shape to compare a sharding with."""

    NOT_SHAPED = "not shaped"
    UNRANKED = "unranked"


Shape = Sequence[int | None]
"""One size per dimension; None for a dynamic one."""


def verify_mesh(mesh: Mesh) -> list[Diagnostic]:
    """Return the problems of a mesh.

    >>> [item.code for item in verify_mesh(Mesh.of(x=0))]
    ['axis-size']
    """
    problem = field_problem(mesh)
    return [*_axis_problems(mesh), *_device_problems(mesh)] if problem is None else [problem]


def _axis_problems(mesh: Mesh) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for index, axis in enumerate(mesh.axes):
        if axis.size < 1:
            message = f"axis {index}: axis size must be at least 1, got: {axis}"
            yield Diagnostic("axis-size", message, hint="remove the axis or give it the number of devices along it")
        if axis.name in seen:
            message = f"axis {index}: duplicate axis name: {quote(axis.name)}"
            yield Diagnostic("duplicate-axis-name", message, hint="give every axis of a mesh its own name")
        seen.add(axis.name)


def _device_problems(mesh: Mesh) -> Iterator[Diagnostic]:
    ids = mesh.device_ids
    negative = [device for device in ids if device < 0]
    if negative:
        message = f"device id must be non-negative, got: {negative[0]} at position {ids.index(negative[0])}"
        yield Diagnostic("device-ids", message, hint="number the devices from 0")
        return
    if not mesh.axes and len(ids) > 1:
        message = f"axes is empty and device_ids has more than one element: {list(ids)}"
        yield Diagnostic("device-ids", message, hint="name the axes, or keep one device id for a maximal mesh")
        return
    if not mesh.axes or not ids:
        return
    if len(ids) != mesh.total_size:
        message = "total product of axis sizes must match total number of device ids, got: "
        message += f"{mesh.total_size} != {len(ids)}"
        yield Diagnostic("device-ids", message, hint=f"list each of the devices 0 to {mesh.total_size - 1} once")
    elif sorted(ids) != list(range(len(ids))):
        message = f"sorted device ids must be iota(product(axes)), got: {sorted(ids)}"
        yield Diagnostic("device-ids", message, hint=f"list each of the devices 0 to {len(ids) - 1} once")


def verify_tensor_sharding(
    sharding: TensorSharding,
    mesh: Mesh | None,
    shape: Shape | NoShape | None = None,
    *,
    check_divisibility: bool = False,
    bound_axes: Collection[str] = (),
) -> list[Diagnostic]:
    """Return the problems of a sharding.

    Args:
        sharding: The sharding.
        mesh: The mesh it is on; None where no mesh of that name exists.
        shape: The shape of the value, or why it has none; None leaves the shape out of account.
        check_divisibility: Whether every static dimension must divide evenly.
        bound_axes: The manual axes of the manual computations around the value.
    """
    if mesh is None:
        name = symbol(str(sharding.mesh))
        hint = f'add a mesh of that name: sdy.mesh {name} = <["x"=2]>'
        return [Diagnostic("unknown-mesh", f"unknown mesh: {name}", hint=hint)]
    if mesh.is_maximal:
        return list(_maximal(sharding))
    problem = _shape_problem(sharding, shape)
    if problem is not None:
        return [problem]
    lists = _axis_lists(sharding)
    problems = [*_priorities(sharding), *_unknown_axes(lists, mesh), *_bound(lists, bound_axes)]
    known = [(role, [axis for axis in axes if mesh.has_axis(axis.name)]) for role, axes in lists]
    problems += [*_duplicates(known), *_mergeable(known, mesh), *_unsorted(known, mesh)]
    problems += [*_invalid_sub_axes(known, mesh), *_overlaps(known)]
    if check_divisibility and not problems and isinstance(shape, Sequence):
        problems += _not_divisible(sharding, mesh, shape)
    return problems


def _maximal(sharding: TensorSharding) -> Iterator[Diagnostic]:
    if sharding.rank or sharding.replicated_axes or sharding.unreduced_axes:
        message = "a maximal sharding can only have a sharding with rank 0 and no replicated or unreduced axes"
        yield Diagnostic("maximal-sharding", f"{message}, got: {sharding}", hint="write it with an empty list: []")


def _shape_problem(sharding: TensorSharding, shape: Shape | NoShape | None) -> Diagnostic | None:
    if shape is None:
        return None
    if shape is NoShape.UNRANKED:
        hint = "give the tensor a rank or remove the sharding"
        return Diagnostic("unranked-tensor", "only ranked tensors can have a sharding", hint=hint)
    if isinstance(shape, NoShape):
        if not (sharding.rank or sharding.replicated_axes or sharding.unreduced_axes):
            return None
        message = "non-shaped tensors can only have a sharding with rank 0 and no replicated or unreduced axes"
        return Diagnostic("non-shaped-value", f"{message}, got: {sharding}", hint="remove the sharding")
    if sharding.rank == len(shape):
        return None
    message = f"sharding doesn't match tensor rank: {sharding.rank} != {len(shape)}"
    hint = f"write {len(shape)} dimension shardings, {{}} for a dimension that is not sharded"
    return Diagnostic("sharding-rank", message, hint=hint)


Places = Sequence[tuple[str, Sequence[AxisRef]]]


def _axis_lists(sharding: TensorSharding) -> Places:
    """Return every list of axes of a sharding with the words for where it is."""
    return [
        *((f"dim {index}", dim.axes) for index, dim in enumerate(sharding.dim_shardings)),
        ("replicated axes", sharding.replicated_axes),
        ("unreduced axes", sharding.unreduced_axes),
    ]


def _priorities(sharding: TensorSharding) -> Iterator[Diagnostic]:
    for index, dim in enumerate(sharding.dim_shardings):
        if dim.priority is None:
            continue
        if dim.priority < 0:
            yield Diagnostic("priority", f"dim {index} has a negative priority: {dim}", hint="priorities start at p0")
        if dim.is_closed and not dim.axes:
            message = f"dim {index} is empty and closed but has a priority: {dim}"
            yield Diagnostic("priority", message, hint=f"write {{}} or {{?}}p{dim.priority}")


def _unknown_axes(lists: Places, mesh: Mesh) -> Iterator[Diagnostic]:
    for role, axes in lists:
        for axis in axes:
            if not mesh.has_axis(axis.name):
                names = ", ".join(quote(item.name) for item in mesh.axes) or "none"
                message = f"{role}: unknown axis name: {quote(axis.name)}"
                yield Diagnostic("unknown-axis", message, hint=f"the axes of the mesh are {names}")


def _bound(lists: Places, bound_axes: Collection[str]) -> Iterator[Diagnostic]:
    for role, axes in lists:
        for axis in axes:
            if axis.name in bound_axes:
                message = f"{role}: operates on axis {quote(axis.name)} which is already bound by a manual computation"
                yield Diagnostic("bound-axis", message, hint="leave the axis out: shapes inside are local to it")


def _duplicates(lists: Places) -> Iterator[Diagnostic]:
    seen: dict[AxisRef, str] = {}
    for role, axes in lists:
        for axis in axes:
            if axis in seen:
                message = f"{role}: duplicate axis ref: {axis}, already in {seen[axis]}"
                yield Diagnostic("duplicate-axis", message, hint="use every axis at most once in a sharding")
            seen.setdefault(axis, role)


def _mergeable(lists: Places, mesh: Mesh) -> Iterator[Diagnostic]:
    for role, axes in lists:
        for first, second in pairwise(axes):
            if first.can_merge(second):
                # The mesh decides whether the whole is the full axis; invalid sub-axes never are.
                merged = first.merge(second, mesh)
                message = f"{role}: two consecutive sub-axes can be merged: {first}, {second}"
                yield Diagnostic("mergeable-sub-axes", message, hint=f"write {merged}")


def _unsorted(lists: Places, mesh: Mesh) -> Iterator[Diagnostic]:
    for role, axes in lists:
        ordered = sorted(axes, key=mesh.sort_key)
        if not role.startswith("dim") and list(axes) != ordered:
            hint = "the order is " + ", ".join(str(axis) for axis in ordered)
            yield Diagnostic("axes-order", f"{role} are not ordered w.r.t. mesh", hint=hint)


def _invalid_sub_axes(lists: Places, mesh: Mesh) -> Iterator[Diagnostic]:
    for role, axes in lists:
        for axis in axes:
            problem = _sub_axis_problem(axis, mesh.axis_size(axis.name))
            if problem is not None:
                code, message, hint = problem
                yield Diagnostic(code, f"{role}: {message}: {axis}", hint=hint)


def _sub_axis_problem(axis: AxisRef, full_size: int) -> tuple[str, str, str] | None:
    sub_axis = axis.sub_axis
    if sub_axis is None:
        return None
    if sub_axis.pre_size < 1:
        return "sub-axis-pre-size", "sub-axis pre-size must be at least 1", "the first sub-axis has pre-size 1"
    if sub_axis.size <= 1:
        return "sub-axis-size", "sub-axis sizes must be greater than 1", "leave a sub-axis of one device out"
    if full_size % sub_axis.next_pre_size:
        message = f"sub-axis next pre-size {sub_axis.next_pre_size} doesn't divide the size of the full axis"
        message += f" {full_size}"
        return "sub-axis-divisibility", message, f"pre-size times size has to divide {full_size}"
    if sub_axis.size == full_size:
        return "sub-axis-is-full", "sub-axis size is equal to the full axis size", f"write {quote(axis.name)}"
    return None


def _overlaps(lists: Places) -> Iterator[Diagnostic]:
    entries = [(axis, role) for role, axes in lists for axis in axes]
    for index, (axis, role) in enumerate(entries):
        for other, other_place in entries[:index]:
            if axis == other or not axis.overlaps(other):
                continue
            if axis.sub_axis is None or other.sub_axis is None:
                message = f"both sub-axis and full-axis are used for axis name: {quote(axis.name)}"
            else:
                message = f"overlapping sub-axes: {other}, {axis}"
            where = role if role == other_place else f"{other_place} and {role}"
            yield Diagnostic("overlapping-axes", f"{where}: {message}", hint="use every part of an axis at most once")


def _not_divisible(sharding: TensorSharding, mesh: Mesh, shape: Shape) -> Iterator[Diagnostic]:
    for index, (size, dim) in enumerate(zip(shape, sharding.dim_shardings, strict=True)):
        parts = dim.sharded_size(mesh)
        if size is not None and size % parts:
            message = f"dim {index} with size {size} is not divisible by its sharded size {parts}"
            yield Diagnostic("not-divisible", message, hint=f"shard it on fewer axes than {dim}, or pad the dimension")


def verify_dim_sharding(dim: DimensionSharding, mesh: Mesh) -> list[Diagnostic]:
    """Return the problems of one dimension sharding; it is called dim 0 in the messages."""
    return verify_tensor_sharding(TensorSharding(mesh, (dim,)), mesh)


def verify_tensor_shardings(
    shardings: TensorShardingPerValue | Sequence[TensorSharding],
    meshes: Mapping[str, Mesh] | Callable[[TensorSharding], Mesh | None],
    shapes: Sequence[Shape | NoShape | None],
    *,
    kind: str = "result",
    bound_axes: Collection[str] = (),
) -> list[Diagnostic]:
    """Return the problems of the shardings of several values.

    Args:
        shardings: One per value. An op without values may have one that is fully replicated or maximal.
        meshes: The meshes by name, or a function that looks them up.
        shapes: One per value, as in `verify_tensor_sharding`.
        kind: The word for a value in the messages.
        bound_axes: As in `verify_tensor_sharding`.
    """
    items = shardings.shardings if isinstance(shardings, TensorShardingPerValue) else shardings
    lookup = meshes if callable(meshes) else lambda sharding: resolve_mesh(sharding.mesh, meshes)
    if not shapes and len(items) == 1:
        mesh = lookup(items[0])
        if mesh is None:
            return _placed(f"{kind} - ", verify_tensor_sharding(items[0], mesh))
        if mesh.is_maximal or items[0].is_fully_replicated:
            return _placed(f"{kind} - ", _maximal(items[0]))
    if len(items) != len(shapes):
        message = f"{kind} shardings don't match number of values: {len(items)} shardings vs {len(shapes)} values"
        return [Diagnostic("sharding-count", message, hint="write one sharding per value")]
    problems: list[Diagnostic] = []
    for index, (sharding, shape) in enumerate(zip(items, shapes, strict=True)):
        prefix = f"{kind} - " if len(items) == 1 else f"{kind} {index} - "
        problems += _placed(prefix, verify_tensor_sharding(sharding, lookup(sharding), shape, bound_axes=bound_axes))
    return problems


def _placed(prefix: str, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    return [Diagnostic(item.code, prefix + item.message, item.location, item.op, item.hint) for item in diagnostics]


_FIELDS: dict[type, dict[str, tuple[type, ...]]] = {
    MeshAxis: {"name": (str,), "size": (int,)},
    Mesh: {"axes": (MeshAxis,), "device_ids": (int,)},
    SubAxis: {"pre_size": (int,), "size": (int,)},
    AxisRef: {"name": (str,), "sub_axis": (SubAxis, type(None))},
    DimensionSharding: {"axes": (AxisRef,), "is_closed": (bool,), "priority": (int, type(None))},
    TensorSharding: {
        "mesh": (str, Mesh),
        "dim_shardings": (DimensionSharding,),
        "replicated_axes": (AxisRef,),
        "unreduced_axes": (AxisRef,),
        "reduction_op": (str,),
    },
}
_EXAMPLE = 'TensorSharding("mesh", (DimensionSharding((AxisRef("x"),)), DimensionSharding())), on Mesh.of(x=2)'
_WORDS = {str: "a text", int: "an integer", bool: "True or False", type(None): "None"}
_TUPLES = {"axes", "device_ids", "dim_shardings", "replicated_axes", "unreduced_axes"}


def field_problem(value: Any) -> Diagnostic | None:
    """Return the first part of a sharding or a mesh that is of another type than its class says.

    >>> print(field_problem(DimensionSharding(("x",))).message)
    axes of DimensionSharding is ('x',), not a tuple of AxisRef
    """
    for name, classes in _FIELDS.get(type(value), {}).items():
        content = getattr(value, name)
        items = content if name in _TUPLES and isinstance(content, tuple) else (content,)
        if not all(_fits(item, classes) for item in items):
            known = " or ".join(_WORDS.get(item, item.__name__) for item in classes)
            wanted = f"a tuple of {known}" if name in _TUPLES else known
            message = f"{name} of {type(value).__name__} is {shown(content)}, not {wanted}"
            return Diagnostic("invalid-field", message, hint=_EXAMPLE)
        for item in items:
            problem = field_problem(item)
            if problem is not None:
                return problem
    return None


def _fits(item: object, classes: tuple[type, ...]) -> bool:
    if isinstance(item, str):
        # Half a pair of surrogates is not Unicode, and MLIR has no text for it.
        return str in classes and item == item.encode(errors="ignore").decode()
    if type(item).__name__ in ("bool", "bool_"):
        return bool in classes
    return isinstance(item, classes) or (int in classes and as_integer(item) is not None)
