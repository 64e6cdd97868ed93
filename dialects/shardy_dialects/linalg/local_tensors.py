"""Local forms of the ops that make tensors and take them apart: sizes in their attributes become those of shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardy_dialects.linalg.tensors import kept_dims
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import local_constant
from shardy_py.plugins import Dialect, Localize, Shard, local_by_types, no_local_form, with_window
from shardy_py.sharding.rule import FactorKind


def localize_extract_slice(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the slice of the shard; elements of sharded dimensions move to the devices that have them in the result.

    Raises:
        CannotLocalize: it is not known where the slice begins.
    """
    shard.check_kinds([FactorKind.NEED_REPLICATION])
    _check_static(op)
    offsets, sizes = list(op.attributes["static_offsets"]), list(_local_sizes(op, shard.operands[0]))
    kept = kept_dims(op.attributes["static_sizes"], op.results[0].shape) or []
    for dim, result_dim in enumerate(kept):
        if result_dim is None or op.operands[0].shape[dim] == op.results[0].shape[result_dim]:
            continue
        parts, start, step = shard.parts(shard.result_shardings[0], result_dim), offsets[dim], _step(op, dim)
        if max(parts, shard.parts(shard.operand_shardings[0], dim)) == 1:
            continue
        if start < 0 or step < 1:
            raise no_local_form("it is not known where the slice of a sharded dimension begins")
        offsets[dim], sizes[dim] = 0, shard.result_shape()[result_dim]
        starts = [start + place * sizes[dim] * step for place in range(parts)]
        shard = with_window(shard, 0, dim, starts, (sizes[dim] - 1) * step + 1, result_dim=result_dim)
    return shard.copy(static_offsets=tuple(offsets), static_sizes=tuple(sizes))


def localize_insert_slice(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the shard with a slice put into it, which has all elements along sharded dimensions.

    Raises:
        CannotLocalize: it is not known which part of the source falls into the shard.
    """
    shard.check_kinds()
    _check_static(op)
    sizes, shape = op.attributes["static_sizes"], op.operands[1].shape
    cut = shard.sharded_dims(shard.operand_shardings[1])
    if any(sizes[dim] != shape[dim] for dim in cut):
        raise no_local_form("a slice is put into a part of a sharded dimension")
    kept = kept_dims(sizes, op.operands[0].shape) or []
    if set(shard.sharded_dims(shard.operand_shardings[0])) != {kept[dim] for dim in cut}:
        raise no_local_form("the source and the destination are not sharded alike")
    return shard.copy(static_sizes=_local_sizes(op, shard.operands[1]))


def localize_expand_shape(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the shard in its new shape."""
    shard.check_kinds()
    if "static_output_shape" not in op.attributes:
        return shard.copy()
    return shard.copy(static_output_shape=shard.result_shape())


def localize_dim(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the size of a dimension of the whole tensor.

    Raises:
        CannotLocalize: it is not known, and the tensor is sharded.
    """
    sharding = shard.operand_shardings[0]
    shape, index = static_shape(op.operands[0].type), _number(op.operands[1])
    if index is not None and index not in shard.sharded_dims(sharding):
        return shard.copy()
    if index is None or shape is None:
        raise no_local_form("it is not known of which dimension the op gives the size")
    return shard.emit.op("arith.constant", (), [op.results[0].type], {"value": shape[index]}).results


def localize_constant(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the part of a constant that the device has; one of equal elements is made in the size of the shard."""
    element = str(op.attributes["value"]).removeprefix("dense<").rpartition("> :")[0]
    if element and not element.startswith(("[", '"', "dense_resource")):
        return shard.copy(value=RawAttribute(f"dense<{element}> : {shard.result_type()}"))
    return local_constant(op, shard)


def _check_static(op: Op) -> None:
    """Check that offsets, sizes and strides are attributes.

    Raises:
        CannotLocalize: one is an operand.
    """
    if "static_sizes" not in op.attributes:
        raise no_local_form("the sizes of the slice are not known")


def _step(op: Op, dim: int) -> int:
    """Return the distance of two elements of a slice; a negative number where an operand holds it."""
    steps = op.attributes.get("static_strides", ())
    return int(steps[dim]) if steps else 1


def _local_sizes(op: Op, value: Value) -> tuple[int, ...]:
    """Return the sizes of a slice, where it takes all of a dimension those of the shard."""
    whole = op.operands[-1 if op.name.endswith("insert_slice") else 0].shape
    return tuple(
        local if size == full else size
        for size, full, local in zip(op.attributes["static_sizes"], whole, value.shape, strict=True)
    )


def _number(value: Value) -> int | None:
    """Return the number of a constant."""
    made = value.defining_op
    found = made.attributes.get("value") if made is not None and not made.operands else None
    return found if isinstance(found, int) else None


FORMS: Mapping[str, Localize] = {
    "arith.constant": localize_constant,
    "tensor.cast": local_by_types,
    "tensor.collapse_shape": local_by_types,
    "tensor.concat": local_by_types,
    "tensor.dim": localize_dim,
    "tensor.empty": local_by_types,
    "tensor.expand_shape": localize_expand_shape,
    "tensor.extract_slice": localize_extract_slice,
    "tensor.insert_slice": localize_insert_slice,
    "tensor.pad": local_by_types,
    "tensor.splat": local_by_types,
}


def register(*dialects: Dialect) -> None:
    """Add the local forms to ops that are defined already."""
    for dialect in dialects:
        for definition in dialect.definitions:
            form = FORMS.get(definition.name)
            if form is not None:
                dialect.replace(definition.with_parts({"local": form}))
