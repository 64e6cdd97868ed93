"""Ops of programs of PyTorch for data that moves between devices.

Collectives and what depends on the number of the device are ops of the dialect ``spmd``, with groups of devices as
attributes; all else are operators of PyTorch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType, Type, static_shape
from shardy_py.ir.interfaces.local import LocalEmitter
from shardy_py.ir.interfaces.named_collectives import NamedCollectives, type_like
from shardy_py.sharding.combiner import Combiner
from shardy_py.values import frozen

_FLOATS = ("f64", "f32", "bf16", "f16")


_NEUTRAL = {Combiner.ADD: 0, Combiner.MUL: 1, Combiner.MIN: float("inf"), Combiner.MAX: float("-inf")}


_SIZES = ("size", "shape")


@frozen
class TorchLocalOps(NamedCollectives):
    """The ops of the dialect ``spmd`` and operators of PyTorch."""

    space: ClassVar[str] = "spmd"

    are_general: bool = False

    def offset(self, emit: LocalEmitter, table: Sequence[int] | None) -> Value:
        """Return the scalar that a table has for the device; 0 without a table."""
        type_ = TensorType((), "i64")
        return emit.op("spmd.offset", (), [type_], {"table": tuple(table or ())}).result

    def reshape(self, emit: LocalEmitter, value: Value, shape: Sequence[int]) -> Value:
        """Return the elements in another shape."""
        return aten(emit, "reshape.default", {"self": value}, shape, shape=tuple(shape))

    def transpose(self, emit: LocalEmitter, value: Value, permutation: Sequence[int]) -> Value:
        """Return the tensor with its dimensions in another order."""
        shape = [value.shape[dim] for dim in permutation]
        return aten(emit, "permute.default", {"self": value}, shape, dims=tuple(permutation))

    def resize(self, emit: LocalEmitter, value: Value, shape: Sequence[int]) -> Value:
        """Return a tensor cut or extended with zeros at the high ends of its dimensions."""
        if tuple(shape) == tuple(value.shape):
            return value
        # A negative width cuts; widths go from the last dimension to the first.
        pairs = zip(reversed(shape), reversed(value.shape), strict=True)
        widths = tuple(width for size, old in pairs for width in (0, size - old))
        return aten(emit, "constant_pad_nd.default", {"self": value}, shape, pad=widths, value=0)

    def mask(self, emit: LocalEmitter, value: Value, dim: int, count: Value | int, fill: Value) -> Value:
        """Return a tensor with a scalar in the place of all but the first elements along a dimension."""
        limit = count if isinstance(count, Value) else self.offset(emit, (count,) if count else None)
        return self.device_op(emit, "mask", [value, limit, fill], value.shape, dim=dim)

    def scalar(self, emit: LocalEmitter, element_type: str, number: Combiner | float) -> Value | None:
        """Return a constant scalar; None where the element type has no such number."""
        attributes = _number(element_type, number)
        return (
            None
            if attributes is None
            else emit.op("spmd.scalar", (), [TensorType((), element_type)], attributes).result
        )

    def padded_attributes(
        self, op: Op, operands: Sequence[Sequence[int]], results: Sequence[Type]
    ) -> Mapping[str, Attribute] | None:
        """Return the sizes that an op holds, changed for padded tensors; None where it holds none."""
        names = [name for name in _SIZES if name in op.attributes]
        return {name: static_shape(results[0]) or () for name in names} or None

    def constant(self, emit: LocalEmitter, op: Op, type_: TensorType) -> Value | None:
        """Return a constant of another size, where all its elements are equal."""
        if op.name == "higher_order.scan_buffer":
            return emit.op(op.name, (), [type_]).result
        if op.name == "aten.empty.memory_format" or op.name.split(".")[1] in ("full", "zeros", "ones"):
            return emit.op_like(op, (), [type_], {"size": tuple(type_.shape)}).result
        return self.whole_constant(emit, op) if op.results[0].type == type_ else None

    def whole_constant(self, emit: LocalEmitter, op: Op) -> Value:
        """Return the constant of an op as it is."""
        return emit.op_like(op, (), [op.results[0].type]).result

    def partial_operands(self, op: Op, combiner: Combiner) -> Sequence[Collection[int]]:
        """Return the groups of operands in which an op may take partial results; its result is partial then, too."""
        from shardy_dialects.aten.linearity import partial_operands

        return partial_operands(op, combiner)

    def is_device_number(self, op: Op) -> bool:
        """Return whether an op gives an entry of a table for the device, or a number."""
        return op.name in ("spmd.offset", "spmd.scalar")

    def fold_device(self, program: Program, device: int) -> None:
        """Put the number of a device into a local program."""
        for op in program.walk():
            if op.name == "spmd.offset" and len(op.attributes["table"]) > 1:
                op.attributes["table"] = (op.attributes["table"][device],)


def _number(element_type: str, number: Combiner | float) -> dict[str, Attribute] | None:
    """Return the attributes of a scalar; one that says ``lowest`` or ``highest`` stands for the limit of integers."""
    if not isinstance(number, Combiner):
        return {"value": float(number)} if element_type in _FLOATS or float(number).is_integer() else None
    if element_type == "i1":
        low = number in (Combiner.ADD, Combiner.OR, Combiner.MAX)
        return {"value": 0.0 if low else 1.0}
    if number in (Combiner.MIN, Combiner.MAX) and element_type not in _FLOATS:
        return None if "complex" in element_type else {"limit": "highest" if number is Combiner.MIN else "lowest"}
    neutral = _NEUTRAL.get(number)
    return None if neutral is None else {"value": float(neutral)}


def aten(
    emit: LocalEmitter, name: str, operands: Mapping[str, Value], result: Sequence[int], **attributes: Attribute
) -> Value:
    """Return the result of an operator of PyTorch, of the element type of its first operand.

    Args:
        emit: Where the op goes.
        name: The name of the overload without ``aten``.
        operands: Tensors by the names of the schema.
        result: The shape of the result.
        attributes: The other arguments.
    """
    values = list(operands.values())
    named = {"operand_names": tuple(operands), **attributes}
    return emit.op(f"aten.{name}", values, [type_like(values[0], result)], named).result
