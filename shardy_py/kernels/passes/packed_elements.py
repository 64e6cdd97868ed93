"""Pointers to elements, and access to those of less than a byte, which buffers pack from the lowest bits of a byte on.

In memory of a block, and in constants, each element has a byte of its own, so that threads write them independently. In
buffers a byte belongs to several elements, and these to several threads: one is written by comparing and exchanging the
byte; vectors of whole bytes are written as they are.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from xdsl.dialects import arith, builtin, llvm, vector
from xdsl.ir import Attribute, Operation, SSAValue

from shardy_py.kernels.dialect.arith_and_llvm import atomic_load
from shardy_py.kernels.dialect.constants import zeros
from shardy_py.kernels.dialect.memory_ops import AtomicRMWOp as UpdateOp
from shardy_py.kernels.passes.atomics import exchange_until_done
from shardy_py.kernels.passes.base import add_before, inline_block, insert_before
from shardy_py.values import frozen

BYTE = 8


NarrowType = builtin.IntegerType | builtin.Float4E2M1FNType
"""The types of which some have elements of less than a byte."""


def is_narrow(type_: Attribute) -> TypeGuard[NarrowType]:
    """Return whether elements of a type have fewer bits than a byte and are not conditions.

    >>> [is_narrow(builtin.IntegerType(width)) for width in (1, 2, 4, 8)], is_narrow(builtin.f4E2M1FN)
    ([False, True, True, False], True)
    """
    return isinstance(type_, NarrowType) and 1 < type_.bitwidth < BYTE


@frozen(eq=False)
class NarrowElements:
    """Elements of less than a byte behind a pointer.

    Args:
        pointer: The pointer to the first one.
        index: The number of the one that is accessed, with 64 bits; None for the first.
        type_: Their type.
        is_packed: Whether they share bytes; else each has one.
    """

    pointer: SSAValue
    index: SSAValue | None
    type_: NarrowType
    is_packed: bool

    @property
    def bits(self) -> int:
        """The bits of memory that an element takes."""
        return self.type_.bitwidth if self.is_packed else BYTE

    def load(self, before: Operation, *, is_atomic: bool) -> llvm.LoadOp:
        """Add ops that read the byte of the element before an op; return the one that reads.

        Args:
            before: The op.
            is_atomic: Whether other threads may update the byte at the same time.
        """
        place = self._byte(before)
        load = atomic_load(place, builtin.i8, 1) if is_atomic and self.is_packed else llvm.LoadOp(place, builtin.i8)
        add_before(before, load)
        return load

    def element(self, before: Operation, byte: SSAValue) -> SSAValue:
        """Return the element that is in a byte."""
        shift = self._shift(before)
        low = byte if shift is None else insert_before(before, arith.ShRUIOp(byte, shift))
        return self._of_bits(before, low)

    def store(self, before: Operation, value: SSAValue) -> None:
        """Write the element, and nothing else of its byte, before an op."""
        place = self._byte(before)
        if self.is_packed:
            exchange_until_done(before, place, builtin.i8, lambda end, byte: self._with_element(end, byte, value))
        else:
            add_before(before, llvm.StoreOp(self._as_byte(before, value), place))

    def update(self, op: UpdateOp) -> None:
        """Write what the body of an atomic update computes of the element, before the update."""

        def updated(end: Operation, byte: SSAValue) -> SSAValue:
            (new,) = inline_block(op.body.block, end, [self.element(end, byte)])
            return self._with_element(end, byte, new)

        exchange_until_done(op, self._byte(op), builtin.i8, updated)

    def load_vector(self, before: Operation, count: int) -> tuple[llvm.LoadOp, SSAValue]:
        """Return the op that loads the bytes of consecutive elements, from this one on, and the vector of elements."""
        size = count * self.bits // BYTE
        load = llvm.LoadOp(self._byte(before), builtin.VectorType(builtin.i8, [size]), size & -size)
        add_before(before, load)
        type_: builtin.VectorType[Attribute] = builtin.VectorType(self.type_, [count])
        elements = insert_before(before, arith.ConstantOp(zeros(type_), type_))
        for number in range(count):
            place, shift = divmod(number * self.bits, BYTE)
            byte = insert_before(before, vector.ExtractOp(load.dereferenced_value, [place], builtin.i8))
            element = self._fixed(before, byte, shift, arith.ShRUIOp)
            part = self._of_bits(before, element)
            elements = insert_before(before, vector.InsertOp(part, elements, [number]))
        return load, elements

    def store_vector(self, before: Operation, value: SSAValue, count: int) -> None:
        """Write neighbours from the element on, which fill whole bytes."""
        size = count * self.bits // BYTE
        type_: builtin.VectorType[Attribute] = builtin.VectorType(builtin.i8, [size])
        words = insert_before(before, arith.ConstantOp(zeros(type_), type_))
        for place in range(size):
            byte: SSAValue | None = None
            for number in range(BYTE // self.bits):
                item = vector.ExtractOp(value, [place * (BYTE // self.bits) + number], self.type_)
                wide = self._as_byte(before, insert_before(before, item))
                moved = self._fixed(before, wide, number * self.bits, arith.ShLIOp)
                byte = moved if byte is None else insert_before(before, arith.OrIOp(byte, moved))
            assert byte is not None
            words = insert_before(before, vector.InsertOp(byte, words, [place]))
        add_before(before, llvm.StoreOp(words, self._byte(before), size & -size))

    def _of_bits(self, before: Operation, byte: SSAValue) -> SSAValue:
        """Return the element in the lowest bits of a byte."""
        if isinstance(self.type_, builtin.IntegerType):
            return insert_before(before, arith.TruncIOp(byte, self.type_))
        bits = insert_before(before, arith.TruncIOp(byte, builtin.IntegerType(self.type_.bitwidth)))
        return insert_before(before, arith.BitcastOp(bits, self.type_))

    def _as_byte(self, before: Operation, value: SSAValue) -> SSAValue:
        """Return a byte with an element in its lowest bits."""
        if not isinstance(self.type_, builtin.IntegerType):
            value = insert_before(before, arith.BitcastOp(value, builtin.IntegerType(self.type_.bitwidth)))
        return insert_before(before, arith.ExtUIOp(value, builtin.i8))

    def _byte(self, before: Operation) -> SSAValue:
        """Return the pointer to the byte of the element."""
        if self.index is None:
            return self.pointer
        number = self.index
        if self.is_packed:
            shift = arith.ConstantOp(builtin.IntegerAttr((BYTE // self.bits).bit_length() - 1, builtin.i64))
            number = insert_before(before, arith.ShRUIOp(number, insert_before(before, shift)))
        return insert_before(before, element_pointer(self.pointer, number, builtin.i8))

    def _shift(self, before: Operation) -> SSAValue | None:
        """Return the bits below the element in its byte; None where there are none."""
        if self.index is None or not self.is_packed:
            return None
        low = insert_before(before, arith.TruncIOp(self.index, builtin.i8))
        last = insert_before(before, arith.ConstantOp(builtin.IntegerAttr(BYTE // self.bits - 1, builtin.i8)))
        width = insert_before(before, arith.ConstantOp(builtin.IntegerAttr(self.bits, builtin.i8)))
        return insert_before(before, arith.MuliOp(insert_before(before, arith.AndIOp(low, last)), width))

    def _with_element(self, before: Operation, byte: SSAValue, value: SSAValue) -> SSAValue:
        """Return a byte with another element."""
        wide = self._as_byte(before, value)
        mask = insert_before(before, arith.ConstantOp(builtin.IntegerAttr((1 << self.bits) - 1, builtin.i8)))
        shift = self._shift(before)
        if shift is not None:
            wide, mask = (insert_before(before, arith.ShLIOp(item, shift)) for item in (wide, mask))
        ones = insert_before(before, arith.ConstantOp(builtin.IntegerAttr(-1, builtin.i8)))
        others = insert_before(before, arith.AndIOp(byte, insert_before(before, arith.XOrIOp(mask, ones))))
        return insert_before(before, arith.OrIOp(others, wide))

    def _fixed(self, before: Operation, byte: SSAValue, shift: int, by: type[arith.ShLIOp | arith.ShRUIOp]) -> SSAValue:
        """Return a byte shifted by a fixed number of bits."""
        if not shift:
            return byte
        amount = insert_before(before, arith.ConstantOp(builtin.IntegerAttr(shift, builtin.i8)))
        return insert_before(before, by(byte, amount))


def bytes_of_constant(value: builtin.DenseIntOrFPElementsAttr) -> builtin.DenseIntOrFPElementsAttr:
    """Return a constant with a byte for every element of less; others stay."""
    if not is_narrow(value.get_element_type()):
        return value
    type_: Any = builtin.TensorType(builtin.i8, value.get_shape())
    element: Any = value.get_element_type()
    numbers: Any = list(value.get_values())
    if isinstance(element, builtin.Float4E2M1FNType):
        numbers = [element.encode_bits(number) for number in numbers]
    return builtin.DenseIntOrFPElementsAttr.from_list(type_, numbers)


POINTER = llvm.LLVMPointerType()
SHARED_SPACE = 3
SHARED_POINTER = llvm.LLVMPointerType(builtin.IntAttr(SHARED_SPACE))


def element_pointer(pointer: SSAValue, index: SSAValue, element: Attribute) -> llvm.GEPOp:
    """Return an op that finds the pointer to an element of a tensor."""
    type_ = SHARED_POINTER if is_shared(pointer.type) else POINTER
    return llvm.GEPOp(pointer, [llvm.GEP_USE_SSA_VAL], element, [index], type_, inbounds=True)


def is_shared(type_: Attribute) -> bool:
    """Return whether pointers of a type are to memory that the threads of a block share."""
    return type_ == SHARED_POINTER
