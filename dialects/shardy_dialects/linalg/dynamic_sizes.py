"""Dynamic sizes of tensors: the ops that read, compute and take them, on a device and once they are known."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.ir.interfaces.result_sizes import NumbersOf, ResultSizes, SizesOf, truncated_quotient
from shardy_py.plugins import ConstantLike, Shard, Trait
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape
from shardy_py.sharding.unknown_size import is_near_derived

EMPTY = "tensor.empty"
_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.ceildivsi": lambda first, second: -(-first // second),
    "arith.ceildivui": lambda first, second: -(-first // second),
    "arith.divsi": truncated_quotient,
    "arith.divui": operator.floordiv,
    "arith.muli": operator.mul,
    "arith.subi": operator.sub,
}


def empty_traits(op: Op) -> tuple[Trait, ...]:
    """Return that an op is a constant, where it takes no sizes."""
    return () if op.operands else (ConstantLike,)


def empty_rule(op: Op) -> OpShardingRule | None:
    """Let a tensor whose sizes are operands be sharded in any way; one of known sizes is a constant, without a rule."""
    if not op.operands:
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(tensor_shape(op.results[0])):
        builder.add_factor({}, {0: dim}, size)
    return builder.build()


def dim_rule(op: Op) -> OpShardingRule:
    """Let the tensor be sharded in any way: only its type matters."""
    return OpShardingRuleBuilder.for_op(op).add_pointwise(tensor_shape(op.operands[0])).build()


def localize_empty(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the op with the sizes that the tensor has on the device."""
    dims = [dim for dim, size in enumerate(op.results[0].shape) if is_near_derived(size)]
    if len(dims) != len(op.operands):
        return local_by_types(op, shard)
    sizes = []
    for dim, operand in zip(dims, shard.operands, strict=True):
        parts = shard.parts(shard.result_shardings[0], dim)
        sizes.append(operand if parts == 1 else _with_number(shard, "arith.divui", operand, parts))
    return shard.emit.op_like(op, sizes, [shard.result_type()]).results


def whole_size(op: Op, shard: Shard, dim: int) -> Value:
    """Return the size of a dimension of a whole tensor, from the size that it has on the device."""
    return _with_number(shard, "arith.muli", shard.copy()[0], shard.parts(shard.operand_shardings[0], dim))


def _with_number(shard: Shard, name: str, value: Value, number: int) -> Value:
    return shard.emit.op(name, [value, index_constant(shard, value, number)], [value.type]).result


def index_constant(shard: Shard, like: Value, number: int) -> Value:
    """Return a number of the type of another one."""
    return shard.emit.op("arith.constant", (), [like.type], {"value": RawAttribute(f"{number} : {like.type}")}).result


def _dim_sizes(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    index, type_ = numbers_of(op.operands[1]), op.operands[0].type
    number = None if index is None else index[0]
    return None if number is None or not isinstance(type_, TensorType) else ResultSizes(numbers=(type_.shape[number],))


def _constant_sizes(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    number = op.attributes.get("value")
    return ResultSizes(numbers=(number,)) if isinstance(number, int) and not isinstance(number, bool) else None


def _arithmetic_sizes(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    sides = [(numbers_of(value) or (None,))[0] for value in op.operands]
    first, second = sides
    if first is None or second is None or (second == 0 and "div" in op.name):
        return None
    return ResultSizes(numbers=(_ARITHMETIC[op.name](first, second),))


def _empty_sizes(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    numbers = iter([(numbers_of(value) or (None,))[0] for value in op.operands])
    type_ = op.results[0].type
    if not op.operands or not isinstance(type_, TensorType):
        return None
    return ResultSizes([next(numbers, None) if size is None else size for size in type_.shape], static=_static_empty)


def _static_empty(op: Op) -> Value:
    new = Op(op.program, EMPTY, (), [op.results[0].type], {})
    assert op.parent is not None
    op.parent.insert_before(op, new)
    return new.result


SIZES: Mapping[str, SizesOf] = {
    **dict.fromkeys(_ARITHMETIC, _arithmetic_sizes),
    "arith.constant": _constant_sizes,
    "arith.index_cast": lambda op, numbers_of: ResultSizes(numbers=numbers_of(op.operands[0])),
    "tensor.dim": _dim_sizes,
    EMPTY: _empty_sizes,
}
"""The sizes of results by op name."""
