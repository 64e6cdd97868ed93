"""Atomic updates of elements behind pointers: an atomic operation of the memory, else a compare-and-swap loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from xdsl.dialects import arith, builtin, llvm, scf
from xdsl.dialects import complex as complex_dialect
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from shardy_py.kernels.dialect.arith_and_llvm import CompareExchangeOp, LLVMAtomicRMWOp, atomic_load, atomic_store
from shardy_py.kernels.dialect.memory_ops import AtomicRMWOp as UpdateOp
from shardy_py.kernels.fusion.fusion import bits_of
from shardy_py.kernels.passes.base import add_before, inline_block, insert_before
from shardy_py.kernels.passes.redundancy import is_inside

_KINDS: Mapping[str, str] = MappingProxyType(
    {
        **{"arith.addi": "add", "arith.andi": "_and", "arith.ori": "_or", "arith.xori": "_xor"},
        **{"arith.maxsi": "max", "arith.maxui": "umax", "arith.minsi": "min", "arith.minui": "umin"},
        "arith.addf": "fadd",
    }
)
# An operation on floats by those on their bits: of numbers without a sign, of those with one, a NaN that always wins.
_BY_BITS = MappingProxyType(
    {"arith.maximumf": ("max", "umin", 0x7FC00000), "arith.minimumf": ("min", "umax", 0xFFC00000 - (1 << 32))}
)


def lower_atomic(op: UpdateOp, place: SSAValue) -> None:
    """Add ops that update an element before an op that says how.

    Args:
        op: The op; what its body computes is moved or copied.
        place: The pointer to the element.
    """
    body = op.body.block
    terminator = body.last_op
    assert terminator is not None
    (new,) = terminator.operands
    if _is_outside(new, op):
        _overwrite(op, place, new)
        return
    name, value = _combined(op, new)
    if name in _KINDS:
        add_before(op, LLVMAtomicRMWOp(_KINDS[name], place, value))
    elif name in _BY_BITS and isinstance(value.type, builtin.Float32Type):
        _extremum(op, place, value, name)
    else:
        _try_until_done(op, place)


def _is_outside(value: SSAValue, op: Operation) -> bool:
    return not is_inside(value.owner, op)


def _combined(op: UpdateOp, new: SSAValue) -> tuple[str, SSAValue]:
    """Return the name of the only op of a body and the op's other operand; an empty name if there are several."""
    body = op.body.block
    update_op = new.owner
    (current,) = body.args
    if not isinstance(update_op, Operation) or update_op is not body.first_op or update_op.next_op is not body.last_op:
        return "", new
    others = [value for value in update_op.operands if value is not current]
    if len(update_op.operands) != 2 or len(others) != 1 or not _is_outside(others[0], op):
        return "", new
    return update_op.name, others[0]


def _overwrite(op: Operation, place: SSAValue, value: SSAValue) -> None:
    """Store a value as a whole; complex numbers by their bits."""
    if isinstance(value.type, builtin.ComplexType):
        value = _to_bits(op, value)
    size = bits_of(str(value.type)) // 8
    add_before(op, atomic_store(value, place, size))


def _extremum(op: Operation, place: SSAValue, value: SSAValue, name: str) -> None:
    """Compare floats by their bits: those with a sign grow the other way. A NaN stays, and wins over numbers."""
    of_positive, of_negative, nan = _BY_BITS[name]
    current = insert_before(op, atomic_load(place, value.type, 4))
    is_number = insert_before(op, arith.CmpfOp(current, current, "ord"))
    end = scf.YieldOp()
    add_before(op, scf.IfOp(is_number, [], Region(Block([end]))))
    bits = insert_before(end, arith.BitcastOp(value, builtin.i32))
    winner = insert_before(end, arith.ConstantOp(builtin.IntegerAttr(nan, builtin.i32)))
    is_nan = insert_before(end, arith.CmpfOp(value, value, "uno"))
    bits = insert_before(end, arith.SelectOp(is_nan, winner, bits))
    zero = insert_before(end, arith.ConstantOp(builtin.IntegerAttr(0, builtin.i32)))
    is_positive = insert_before(end, arith.CmpiOp(bits, zero, "sge"))
    then, otherwise = (
        Region(Block([LLVMAtomicRMWOp(kind, place, bits), scf.YieldOp()])) for kind in (of_positive, of_negative)
    )
    add_before(end, scf.IfOp(is_positive, [], then, otherwise))


def _try_until_done(op: UpdateOp, place: SSAValue) -> None:
    """Compute the new element from the one that is there, and write it if that is still there; else again."""
    type_ = op.body.block.args[0].type

    def updated(end: Operation, current: SSAValue) -> SSAValue:
        (new,) = inline_block(op.body.block, end, [_from_bits(end, current, type_)])
        return _to_bits(end, new)

    exchange_until_done(op, place, builtin.IntegerType(bits_of(str(type_))), updated)


def exchange_until_done(
    before_op: Operation,
    place: SSAValue,
    bits: builtin.IntegerType,
    updated: Callable[[Operation, SSAValue], SSAValue],
) -> None:
    """Update the bits at an address by a compare-and-swap loop.

    Args:
        before_op: The op before which this is done.
        place: The pointer.
        bits: The type of the bits.
        updated: Adds ops before an op that compute the new bits from the present ones, and returns the new bits.
    """
    start = insert_before(before_op, atomic_load(place, bits, bits.width.data // 8))
    before, after = Block(arg_types=[bits]), Block(arg_types=[bits])
    (current,) = before.args
    marker = scf.YieldOp()
    before.add_op(marker)
    exchange = CompareExchangeOp(place, current, updated(marker, current))
    add_before(marker, exchange)
    present, is_done = (insert_before(marker, _field(exchange.result, number)) for number in range(2))
    true = insert_before(marker, arith.ConstantOp(builtin.IntegerAttr(-1, builtin.i1)))
    again = insert_before(marker, arith.XOrIOp(is_done, true))
    add_before(marker, scf.ConditionOp(again, present))
    marker.detach()
    marker.erase()
    after.add_op(scf.YieldOp(after.args[0]))
    add_before(before_op, scf.WhileOp([start], [bits], Region(before), Region(after)))


def _field(struct: SSAValue, number: int) -> llvm.ExtractValueOp:
    assert isinstance(struct.type, llvm.LLVMStructType)
    position = builtin.DenseArrayBase.from_list(builtin.i64, [number])
    return llvm.ExtractValueOp(position, struct, struct.type.types.data[number])


def _to_bits(before: Operation, value: SSAValue) -> SSAValue:
    """Return a number as an integer of the same bits."""
    type_ = value.type
    if isinstance(type_, builtin.IntegerType):
        return value
    if not isinstance(type_, builtin.ComplexType):
        return insert_before(before, arith.BitcastOp(value, builtin.IntegerType(bits_of(str(type_)))))
    wide_type, half_width = _complex_bits(type_)
    parts = [insert_before(before, part(value)) for part in (complex_dialect.ReOp, complex_dialect.ImOp)]
    words = [insert_before(before, arith.ExtUIOp(_to_bits(before, part), wide_type)) for part in parts]
    shift = insert_before(before, arith.ConstantOp(builtin.IntegerAttr(half_width, wide_type)))
    high = insert_before(before, arith.ShLIOp(words[1], shift))
    return insert_before(before, arith.OrIOp(words[0], high))


def _from_bits(before: Operation, value: SSAValue, type_: Attribute) -> SSAValue:
    """Return the bits of an integer as a number of a type."""
    if isinstance(type_, builtin.IntegerType):
        return value
    if not isinstance(type_, builtin.ComplexType):
        return insert_before(before, arith.BitcastOp(value, type_))
    wide_type, half_width = _complex_bits(type_)
    shift = insert_before(before, arith.ConstantOp(builtin.IntegerAttr(half_width, wide_type)))
    high = insert_before(before, arith.ShRUIOp(value, shift))
    integer = builtin.IntegerType(half_width)
    words = [insert_before(before, arith.TruncIOp(word, integer)) for word in (value, high)]
    real, imaginary = (_from_bits(before, word, type_.element_type) for word in words)
    return insert_before(before, complex_dialect.CreateOp(real, imaginary, type_))


def _complex_bits(type_: builtin.ComplexType[Any]) -> tuple[builtin.IntegerType, int]:
    """Return the integer of a complex number's bits, and the bits of a part."""
    half = bits_of(str(type_.element_type))
    return builtin.IntegerType(2 * half), half
