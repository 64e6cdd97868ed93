"""Pointers, loads and stores, vectors as LLVM."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects import builtin, llvm, vector
from xdsl.ir import Attribute, Operation, SSAValue

from shardy_py.indexing.op_maps import strides_of
from shardy_py.kernels.dialect.llvm_more import is_atomic
from shardy_py.kernels.lower.atomics import scope
from shardy_py.kernels.lower.writer import FunctionWriter, Handler
from shardy_py.kernels.passes.lower_tensors import INVARIANT


def gep(writer: FunctionWriter, op: llvm.GEPOp) -> None:
    """Return the pointer to an element."""
    indices = iter(op.ssa_indices)
    parts = [
        writer.typed(next(indices)) if number == llvm.GEP_USE_SSA_VAL else f"i32 {number}"
        for number in op.rawConstantIndices.iter_values()
    ]
    inbounds = "inbounds " if op.inbounds is not None else ""
    text = ", ".join([writer.type(op.elem_type), writer.typed(op.ptr), *parts])
    writer.let(op.result, f"getelementptr {inbounds}{text}")


def address_of(writer: FunctionWriter, op: llvm.AddressOfOp) -> None:
    """Return the pointer to a global."""
    writer.bind(op.result, f"@{op.global_name.string_value()}")


def _suffix(op: llvm.LoadOp | llvm.StoreOp) -> str:
    align = f", align {op.alignment.value.data}" if op.alignment is not None else ""
    return align + _invariant(op)


def _invariant(op: llvm.LoadOp | llvm.StoreOp) -> str:
    return ", !invariant.load !0" if INVARIANT in op.attributes else ""


def _parts(type_: Attribute, writer: FunctionWriter) -> tuple[str, int]:
    """Return the type and number of what is moved one by one, none for a number or vector that is moved at once.

    LLVM unites parts of complex numbers with their neighbours; on the host it makes the vectors of its own loops.
    """
    if isinstance(type_, builtin.ComplexType):
        return writer.type(type_.element_type), 2
    if isinstance(type_, builtin.VectorType) and not writer.target.is_device:
        return writer.type(type_.element_type), type_.get_shape()[0]
    return "", 0


def load(writer: FunctionWriter, op: llvm.LoadOp) -> None:
    """Read a number or a vector."""
    result = op.dereferenced_value
    element, count = _parts(result.type, writer)
    if is_atomic(op):
        text = f"load atomic {writer.type(result)}, {writer.typed(op.ptr)} {scope(writer)}monotonic"
        writer.let(result, text + _suffix(op))
        return
    if not count:
        writer.let(result, f"load {writer.type(result)}, {writer.typed(op.ptr)}{_suffix(op)}")
        return
    found = "poison"
    for number in range(count):
        place = _part_place(writer, op.ptr, element, number)
        part = writer.new(f"load {element}, {place}{_invariant(op)}")
        found = writer.new(f"insertelement {writer.type(result)} {found}, {element} {part}, i32 {number}")
    writer.bind(result, found)


def store(writer: FunctionWriter, op: llvm.StoreOp) -> None:
    """Write a number or a vector."""
    element, count = _parts(op.value.type, writer)
    if is_atomic(op):
        writer.line(
            f"store atomic {writer.typed(op.value)}, {writer.typed(op.ptr)} {scope(writer)}unordered{_suffix(op)}"
        )
        return
    if not count:
        writer.line(f"store {writer.typed(op.value)}, {writer.typed(op.ptr)}{_suffix(op)}")
        return
    for number in range(count):
        place = _part_place(writer, op.ptr, element, number)
        part = writer.new(f"extractelement {writer.typed(op.value)}, i32 {number}")
        writer.line(f"store {element} {part}, {place}")


def _part_place(writer: FunctionWriter, pointer: SSAValue, element: str, number: int) -> str:
    place = writer.new(f"getelementptr inbounds {element}, {writer.typed(pointer)}, i64 {number}")
    return f"{writer.type(pointer)} {place}"


def _position(writer: FunctionWriter, op: vector.ExtractOp | vector.InsertOp) -> str:
    """Return the place of an element in a vector; rows of a vector of several dimensions follow each other."""
    type_ = (op.vector if isinstance(op, vector.ExtractOp) else op.dest).type
    assert isinstance(type_, builtin.VectorType)
    places = list(zip(op.get_mixed_position(), strides_of(type_.get_shape()), strict=True))
    fixed = sum(place * stride for place, stride in places if isinstance(place, int))
    moving = [(place, stride) for place, stride in places if not isinstance(place, int)]
    if not moving:
        return f"i32 {fixed}"
    index, total = writer.type(moving[0][0]), ""
    for place, stride in moving:
        term = writer.new(f"mul {index} {writer.get(place)}, {stride}") if stride > 1 else writer.get(place)
        total = writer.new(f"add {index} {total}, {term}") if total else term
    return f"{index} " + (writer.new(f"add {index} {total}, {fixed}") if fixed else total)


def extract(writer: FunctionWriter, op: vector.ExtractOp) -> None:
    """Return an element of a vector."""
    writer.let(op.result, f"extractelement {writer.typed(op.vector)}, {_position(writer, op)}")


def insert(writer: FunctionWriter, op: vector.InsertOp) -> None:
    """Return a vector with another element."""
    text = f"{writer.typed(op.dest)}, {writer.typed(op.source)}, {_position(writer, op)}"
    writer.let(op.result, f"insertelement {text}")


def broadcast(writer: FunctionWriter, op: vector.BroadcastOp) -> None:
    """Return a vector whose elements are a number."""
    type_, found = writer.type(op.vector), "poison"
    assert isinstance(op.vector.type, builtin.VectorType)
    for number in range(op.vector.type.get_shape()[0]):
        found = writer.new(f"insertelement {type_} {found}, {writer.typed(op.source)}, i32 {number}")
    writer.bind(op.vector, found)


def from_elements(writer: FunctionWriter, op: Operation) -> None:
    """Return a vector of its elements."""
    type_, found = writer.type(op.results[0]), "poison"
    for number, value in enumerate(op.operands):
        found = writer.new(f"insertelement {type_} {found}, {writer.typed(value)}, i32 {number}")
    writer.bind(op.results[0], found)


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "llvm.getelementptr": gep,
        "llvm.load": load,
        "llvm.mlir.addressof": address_of,
        "llvm.store": store,
        "vector.broadcast": broadcast,
        "vector.extract": extract,
        "vector.from_elements": from_elements,
        "vector.insert": insert,
    }
)
