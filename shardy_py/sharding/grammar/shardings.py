"""Grammar of axes, meshes and shardings."""

from __future__ import annotations

from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.lexer import Cursor, comma_list
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.tensor import (
    DimensionSharding,
    ManualAxes,
    ReductionOp,
    TensorSharding,
    TensorShardingPerValue,
)

_REDUCTIONS: dict[str, ReductionOp] = {"sum": "sum", "max": "max", "min": "min"}


def axis_ref(cursor: Cursor) -> AxisRef:
    """Parse an axis or a sub-axis."""
    name = cursor.string("an axis name")
    if not cursor.accept(":"):
        return AxisRef(name)
    cursor.expect("(")
    pre_size = cursor.integer("the pre-size of a sub-axis")
    cursor.expect(")")
    return AxisRef(name, SubAxis(pre_size, cursor.integer("the size of a sub-axis")))


def dim_sharding(cursor: Cursor) -> DimensionSharding:
    """Parse a dimension sharding."""
    cursor.expect("{")
    axes: list[AxisRef] = []
    is_closed = True
    while not cursor.accept("}"):
        if axes and not cursor.accept(","):
            cursor.fail("',' or '}'")
        if cursor.accept("?"):
            cursor.expect("}")
            is_closed = False
            break
        axes.append(axis_ref(cursor))
    return DimensionSharding(tuple(axes), is_closed, _priority(cursor))


def _priority(cursor: Cursor) -> int | None:
    token = cursor.token
    if not token or not (token[0].isalpha() or token[0] == "_"):
        return None
    digits = token[1:]
    if token[0] != "p" or not (digits.isascii() and digits.isdigit()):
        cursor.fail("a priority in the form p<number>", code="priority", hint='write it like {"x"}p1')
    if len(digits) > 1 and digits[0] == "0":
        cursor.fail("a priority without leading zeros", code="priority", hint=f"write p{digits.lstrip('0') or 0}")
    if len(digits) > 19 or int(digits) >= 2**63:
        cursor.fail("a priority of at most 63 bits", code="priority", hint="priorities may have gaps; use small ones")
    cursor.advance()
    return int(digits)


def _mesh_axis(cursor: Cursor) -> MeshAxis:
    name = cursor.string("an axis name")
    cursor.expect("=")
    return MeshAxis(name, cursor.integer("the size of the axis"))


def _device_id(cursor: Cursor) -> int:
    return cursor.integer("a device id")


def mesh(cursor: Cursor) -> Mesh:
    """Parse a mesh."""
    cursor.expect("<")
    cursor.expect("[")
    axes = comma_list(cursor, "]", _mesh_axis)
    device_ids: tuple[int, ...] = ()
    if cursor.accept(","):
        cursor.expect("device_ids")
        cursor.expect("=")
        cursor.expect("[")
        device_ids = (_device_id(cursor),)
        if not cursor.accept("]"):
            cursor.expect(",", "]")
            device_ids += comma_list(cursor, "]", _device_id)
    cursor.expect(">", ",")
    return Mesh(axes, device_ids)


def tensor_sharding(cursor: Cursor) -> TensorSharding:
    """Parse a tensor sharding, its mesh named or inlined."""
    cursor.expect("<")
    mesh_or_name = mesh(cursor) if cursor.accept("mesh") else cursor.symbol()
    cursor.expect(",")
    cursor.expect("[")
    dims = comma_list(cursor, "]", dim_sharding)
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    reduction: ReductionOp = "sum"
    while cursor.accept(","):
        if not replicated and cursor.accept("replicated"):
            cursor.expect("=")
            replicated = axis_list(cursor)
        elif not unreduced and cursor.accept("unreduced"):
            if cursor.accept("="):
                reduction = _reduction(cursor)
            unreduced = axis_list(cursor)
        else:
            cursor.fail("'replicated' or 'unreduced', each at most once")
    cursor.expect(">", ",")
    return TensorSharding(mesh_or_name, dims, replicated, unreduced, reduction)


def _reduction(cursor: Cursor) -> ReductionOp:
    if cursor.token not in _REDUCTIONS:
        return "sum"
    return _REDUCTIONS[cursor.advance()]


def axis_list(cursor: Cursor) -> tuple[AxisRef, ...]:
    """Parse a list of axes in braces, not empty."""
    cursor.expect("{")
    if cursor.token == "}":
        cursor.fail("an axis name in double quotes", hint="leave the list out where there are no axes")
    return comma_list(cursor, "}", axis_ref)


def tensor_sharding_per_value(cursor: Cursor) -> TensorShardingPerValue:
    """Parse the shardings of several values."""
    cursor.expect("<")
    cursor.expect("[")
    shardings = comma_list(cursor, "]", tensor_sharding)
    cursor.expect(">")
    return TensorShardingPerValue(shardings)


def manual_axes(cursor: Cursor) -> ManualAxes:
    """Parse the axes of a manual computation."""
    cursor.expect("{")
    return ManualAxes(comma_list(cursor, "}", lambda inner: inner.string("an axis name")))
