"""Verify the shardings of a manual computation: each broken invariant is a diagnostic."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod

from shardy_py.errors import Diagnostic
from shardy_py.sharding.axes import quote
from shardy_py.sharding.manual_axes import common_mesh, num_manual_axes, resolve_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.sharding.verify import NoShape, Shape, verify_tensor_shardings
from shardy_py.values import frozen


@frozen
class ManualValues:
    """The operands or the results of a manual computation.

    Args:
        shardings: One per value.
        global_shapes: The shapes outside, one per value.
        local_shapes: The shapes of the block arguments, or of what the body returns.
    """

    shardings: tuple[TensorSharding, ...]
    global_shapes: Sequence[Shape | NoShape]
    local_shapes: Sequence[Shape | NoShape]


def verify_manual_computation_shardings(
    manual_axes: Sequence[str],
    operands: ManualValues,
    results: ManualValues,
    meshes: Mapping[str, Mesh],
    *,
    bound_axes: Collection[str] = (),
) -> list[Diagnostic]:
    """Return the problems of the shardings of a manual computation.

    Args:
        manual_axes: The names of its manual axes.
        operands: Its operands, with the in-shardings.
        results: Its results, with the out-shardings.
        meshes: The meshes by name.
        bound_axes: The manual axes of the manual computations around it.
    """
    problems = [
        *_nested(manual_axes, bound_axes),
        *_values(manual_axes, operands, meshes, bound_axes, "operand"),
        *_values(manual_axes, results, meshes, bound_axes, "result"),
    ]
    if problems or not (operands.shardings or results.shardings):
        return problems
    return list(_mesh_problems(manual_axes, (*operands.shardings, *results.shardings), meshes))


def _nested(manual_axes: Sequence[str], bound_axes: Collection[str]) -> Iterator[Diagnostic]:
    for name in manual_axes:
        if name in bound_axes:
            message = f"operates on axis {quote(name)} which is already bound by a parent manual computation"
            yield Diagnostic("bound-axis", message, hint="make the inner computation manual on other axes")


def _mesh_problems(
    manual_axes: Sequence[str], shardings: Sequence[TensorSharding], meshes: Mapping[str, Mesh]
) -> Iterator[Diagnostic]:
    name = common_mesh(shardings, meshes)
    mesh = None if name is None else resolve_mesh(name, meshes)
    if mesh is None:
        if manual_axes:
            message = "all in and out shardings must be bound to the same mesh or an empty mesh"
            yield Diagnostic("different-meshes", message, hint="name one mesh in all of them")
        return
    for axis in manual_axes:
        if not mesh.has_axis(axis):
            names = ", ".join(quote(item.name) for item in mesh.axes) or "none"
            yield Diagnostic("unknown-axis", f"unknown manual axis: {quote(axis)}", hint=f"the mesh has {names}")


def _values(
    manual_axes: Sequence[str],
    values: ManualValues,
    meshes: Mapping[str, Mesh],
    bound_axes: Collection[str],
    kind: str,
) -> list[Diagnostic]:
    if not (values.shardings or values.global_shapes or values.local_shapes):
        return []
    problems = verify_tensor_shardings(values.shardings, meshes, values.global_shapes, kind=kind, bound_axes=bound_axes)
    if problems:
        return problems
    outside, inside = len(values.global_shapes), len(values.local_shapes)
    if outside != inside:
        message = f"number of op {kind}s and region {kind}s must match. Op has {outside} op {kind}s and "
        hint = f"give the region one {kind} per {kind} of the op"
        return [Diagnostic("value-count", f"{message}{inside} region {kind}s", hint=hint)]
    for index, (sharding, shape, local) in enumerate(
        zip(values.shardings, values.global_shapes, values.local_shapes, strict=False)
    ):
        mesh = resolve_mesh(sharding.mesh, meshes)
        problems += _order(manual_axes, sharding, f"{kind} sharding at index {index}")
        if mesh is not None and not isinstance(shape, NoShape):
            problems += _local_shape(manual_axes, sharding, mesh, (shape, local), (kind, index))
    return problems


def _order(manual_axes: Sequence[str], sharding: TensorSharding, role: str) -> Iterator[Diagnostic]:
    for index, dim in enumerate(sharding.dim_shardings):
        first_free = num_manual_axes(dim, manual_axes)
        late = [axis for axis in dim.axes[first_free:] if axis.name in manual_axes]
        if late:
            message = f"{role} must have all manual axes come before free axes in its dimension sharding at index "
            message += f"{index}. Saw manual axis {late[0]} after free axis {dim.axes[dim.axes.index(late[0]) - 1]}"
            yield Diagnostic("manual-axes-order", message, hint="put the manual axes first")


def _local_shape(
    manual_axes: Sequence[str],
    sharding: TensorSharding,
    mesh: Mesh,
    shapes: tuple[Shape, Shape | NoShape],
    position: tuple[str, int],
) -> Iterator[Diagnostic]:
    shape, local = shapes
    kind, index = position
    parts = [_manual_size(dim, manual_axes, mesh) for dim in sharding.dim_shardings]
    for dim, (size, count) in enumerate(zip(shape, parts, strict=False)):
        if size is not None and size % count:
            message = f"{kind} {index} - dim {dim}: dimension size {size} is not divisible by the manual axes size "
            hint = "manual axes cannot pad: shard the dimension on fewer of them"
            yield Diagnostic("not-divisible", f"{message}{count}", hint=hint)
            return
    expected = [None if size is None else size // count for size, count in zip(shape, parts, strict=False)]
    if isinstance(local, NoShape) or expected != list(local):
        message = f"{kind} shape, corresponding sharding, and region {kind} shape at index {index} must match. "
        actual = local.value if isinstance(local, NoShape) else _shape_text(local)
        message += f"Expected local shape {_shape_text(expected)}, actual local shape {actual}"
        yield Diagnostic("local-shape", message, hint="divide each dimension by the sizes of its manual axes")


def _manual_size(dim: DimensionSharding, manual_axes: Sequence[str], mesh: Mesh) -> int:
    return prod(axis.size(mesh) for axis in dim.axes if axis.name in manual_axes)


def _shape_text(shape: Shape) -> str:
    return "x".join("?" if size is None else str(size) for size in shape) or "scalar"
