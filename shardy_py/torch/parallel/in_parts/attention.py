"""Attention in which several heads of queries share one of keys: each gets keys of its own, where heads are sharded."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.tensor import CLOSED
from shardy_py.torch.frontend.calls import OPERAND_NAMES
from shardy_py.torch.parallel.in_parts.writer import OperatorWriter, element_type_of, shape_of

_HEADS = 1


def grouped_attention(write: OperatorWriter) -> Sequence[Value] | None:
    """Return attention with heads of keys and values that are repeated; each device repeats those of its queries."""
    query, key, value = (write.tensor(name) for name in ("query", "key", "value"))
    if len(shape_of(query)) != 4 or not write.is_cut(write.op.results[0], [_HEADS]):
        return None
    if shape_of(key)[_HEADS] == shape_of(query)[_HEADS] or len(write.op.results) > 1:
        return None
    operands = dict(zip(write.op.attributes[OPERAND_NAMES], write.op.operands, strict=True))
    operands["key"], operands["value"] = (_repeated(write, item, shape_of(query)[_HEADS]) for item in (key, value))
    more = {key: item for key, item in write.op.attributes.items() if key not in (OPERAND_NAMES, "enable_gqa")}
    name = write.op.name.removeprefix("aten.")
    result = write.op.results[0]
    type_ = TensorType(shape_of(result), element_type_of(result))
    return [write.call(name, operands, type_, write.program.shardings.get(result.id), **more)]


def _repeated(write: OperatorWriter, value: Value, heads: int) -> Value:
    batch, kv_heads, rows, width = shape_of(value)
    sharding, type_ = write.program.shardings.get(value.id), element_type_of(value)
    wide = write.unsqueezed(value, _HEADS + 1)
    shape = (batch, kv_heads, heads // kv_heads, rows, width)
    split = write.program.shardings.get(wide.id)
    wide = write.call("expand.default", {"self": wide}, TensorType(shape, type_), split, size=shape)
    flat = (batch, heads, rows, width)
    if sharding is not None and not write.is_cut(value, [_HEADS]):
        items = sharding.dim_shardings
        sharding = evolve(sharding, dim_shardings=(items[0], CLOSED, *items[2:]))
    return write.call("reshape.default", {"self": wide}, TensorType(flat, type_), sharding, shape=flat)
