"""Local programs for one device: its number is put in, and the offsets that follow from it become constants."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from math import prod

from attrs import field

from shardy_dialects.stablehlo.elementwise.ops import COMPARE, ON_INTEGERS, SELECT
from shardy_dialects.stablehlo.local.literals import array
from shardy_py.ir.graph.attributes import DenseElements, RawAttribute
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType, Type, static_shape
from shardy_py.values import define

_DEVICE = "stablehlo.partition_id"


_DIRECTION = r"\b(EQ|NE|LT|LE|GT|GE)\b"


_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


_SAME = frozenset(("stablehlo.convert", "stablehlo.reshape"))


_INTEGER = re.compile(r"u?i\d+")


@define
class DeviceFolding:
    """Folds the number of a device into a program, in place.

    Attributes:
        program: The program.
        device: The number.
    """

    program: Program
    device: int
    _known: dict[int, tuple[int, ...]] = field(factory=dict, init=False)
    _device_ops: dict[int, Op] = field(factory=dict, init=False)

    def run(self) -> None:
        """Fold the integers that follow from the number of the device."""
        candidates = []
        for op in list(self.program.walk()):
            values = self._values(op)
            if values is not None:
                self._known[op.result.id] = values
                candidates.append(op)
                if op.name == _DEVICE or any(value.id in self._device_ops for value in op.operands):
                    self._device_ops[op.result.id] = op
            elif op.name == "stablehlo.dynamic_slice":
                self._slice(op)
        constants = [self._replaced(op) for op in self._device_ops.values()]
        for op in (*reversed(candidates), *constants):
            if not op.result.uses:
                op.erase()

    def _values(self, op: Op) -> tuple[int, ...] | None:
        """Return the integers that the only result of an op holds, or None where they are not known."""
        if len(op.results) != 1 or not _is_integer(op.result):
            return None
        if op.name == _DEVICE:
            return (self.device,)
        if op.name == "stablehlo.constant":
            value = op.attributes.get("value")
            return elements_of(value) if isinstance(value, DenseElements) else None
        operand_values = [self._known.get(value.id) for value in op.operands]
        known = [item for item in operand_values if item is not None]
        if not operand_values or len(known) < len(operand_values):
            return None
        if op.name in _SAME:
            return known[0]
        if op.name == "stablehlo.dynamic_slice":
            return _sliced(op, known[0], known[1:])
        if any(len(item) != 1 for item in known):
            return None
        folded = fold_integers(op, [item[0] for item in known])
        return None if folded is None or not fits_type(folded, op.result.type) else (folded,)

    def _slice(self, op: Op) -> None:
        """Make a slice of a dynamic slice whose starts are known."""
        starts = [self._known.get(value.id) for value in op.operands[1:]]
        sizes, shape = op.attributes["slice_sizes"], static_shape(op.operands[0].type)
        if shape is None or None in starts or not any(value.id in self._device_ops for value in op.operands[1:]):
            return
        pairs = zip((start[0] for start in starts if start is not None), sizes, shape, strict=True)
        begins = [max(0, min(start, full_size - size)) for start, size, full_size in pairs]
        limits = [begin + size for begin, size in zip(begins, sizes, strict=True)]
        attributes = {
            "start_indices": array(begins),
            "limit_indices": array(limits),
            "strides": array([1] * len(begins)),
        }
        static_slice = Op(self.program, "stablehlo.slice", [op.operands[0]], [op.result.type], attributes)
        _put_in_place(op, static_slice)
        op.erase()

    def _replaced(self, op: Op) -> Op:
        """Return the constant that now stands in the place of an op."""
        constant = Op(self.program, "stablehlo.constant", (), [op.result.type], {"value": self._constant(op.result)})
        _put_in_place(op, constant)
        return constant

    def _constant(self, value: Value) -> RawAttribute:
        is_flag = isinstance(value.type, TensorType) and value.type.element_type == "i1"
        words = [str(bool(item)).lower() if is_flag else str(item) for item in self._known[value.id]]
        text = f"[{', '.join(words)}]" if static_shape(value.type) else words[0]
        return RawAttribute(f"dense<{text}> : {value.type}")


def _put_in_place(op: Op, replacement: Op) -> None:
    if op.parent is not None:
        op.parent.insert_before(op, replacement)
    op.result.replace_all_uses_with(replacement.result)
    sharding = op.program.shardings.get(op.result.id)
    if sharding is not None:
        op.program.shardings[replacement.result.id] = sharding


def fold_integers(op: Op, numbers: Sequence[int]) -> int | None:
    """Return the value of an op for integers; None for ops that are not folded."""
    if op.name in ON_INTEGERS:
        return ON_INTEGERS[op.name](*numbers)
    if op.name == SELECT:
        return numbers[1] if numbers[0] else numbers[2]
    if op.name == COMPARE:
        direction = re.search(_DIRECTION, str(op.attributes.get("comparison_direction")))
        return None if direction is None else int(_COMPARISONS[direction[0]](*numbers))
    return None


def _is_integer(value: Value) -> bool:
    """Return whether a value is a scalar or a list of integers."""
    return has_integers(value.type) and len(value.shape) <= 1


def has_integers(type_: Type) -> bool:
    """Return whether a type is that of a tensor of integers."""
    return isinstance(type_, TensorType) and bool(_INTEGER.fullmatch(type_.element_type))


def elements_of(value: DenseElements) -> tuple[int, ...]:
    """Return all elements of a tensor of integers, also where they are one number."""
    count = prod(value.shape)
    return tuple(value.values) * (count if len(value.values) == 1 else 1)


def _sliced(op: Op, values: Sequence[int], starts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    (size,), ((start,),) = op.attributes["slice_sizes"], starts
    begin = max(0, min(start, len(values) - size))
    return tuple(values[begin : begin + size])


def fits_type(value: int, type_: Type) -> bool:
    """Return whether an integer is one of a type."""
    if not isinstance(type_, TensorType) or not has_integers(type_):
        return False
    is_unsigned, bits = type_.element_type.startswith("u"), int(type_.element_type.lstrip("ui"))
    if is_unsigned or bits == 1:
        return 0 <= value < 1 << bits
    return -(1 << bits - 1) <= value < 1 << bits - 1


def fold_device(program: Program, device: int) -> None:
    """Put the number of a device into a local program, and fold what follows from it.

    Args:
        program: The program, which changes.
        device: The number of the device.
    """
    DeviceFolding(program, device).run()
