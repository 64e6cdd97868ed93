"""Pointers, loads and stores, vectors and atomic updates as LLVM.

On the host one processor thread runs the whole grid, so that a load, an operation and a store are atomic.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects import builtin, llvm, vector
from xdsl.ir import Attribute, Operation, SSAValue

from shardy_py.indexing.op_maps import strides_of
from shardy_py.kernels.dialect.arith_and_llvm import DEVICE, CompareExchangeOp, LLVMAtomicRMWOp, is_atomic
from shardy_py.kernels.lower.floats import rounded, widened
from shardy_py.kernels.lower.writer import FunctionWriter, Handler, is_short
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
    vector_text = "poison"
    for number in range(count):
        place = _part_place(writer, op.ptr, element, number)
        part = writer.new(f"load {element}, {place}{_invariant(op)}")
        vector_text = writer.new(f"insertelement {writer.type(result)} {vector_text}, {element} {part}, i32 {number}")
    writer.bind(result, vector_text)


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
    type_, vector_text = writer.type(op.vector), "poison"
    assert isinstance(op.vector.type, builtin.VectorType)
    for number in range(op.vector.type.get_shape()[0]):
        vector_text = writer.new(f"insertelement {type_} {vector_text}, {writer.typed(op.source)}, i32 {number}")
    writer.bind(op.vector, vector_text)


def from_elements(writer: FunctionWriter, op: Operation) -> None:
    """Return a vector of its elements."""
    type_, vector_text = writer.type(op.results[0]), "poison"
    for number, value in enumerate(op.operands):
        vector_text = writer.new(f"insertelement {type_} {vector_text}, {writer.typed(value)}, i32 {number}")
    writer.bind(op.results[0], vector_text)


_ON_HOST: Mapping[str, str] = MappingProxyType(
    {"add": "add", "_and": "and", "_or": "or", "_xor": "xor", "fadd": "fadd"}
)
_EXTREMA: Mapping[str, str] = MappingProxyType({"max": "smax", "min": "smin", "umax": "umax", "umin": "umin"})


def scope(writer: FunctionWriter) -> str:
    """Return who sees an atomic access as a whole: on a device its threads."""
    return f'syncscope("{DEVICE}") ' if writer.target.is_device else ""


def atomic_rmw(writer: FunctionWriter, op: LLVMAtomicRMWOp) -> None:
    """Update an element by one operation."""
    if not writer.target.is_device:
        _on_host(writer, op)
    elif isinstance(op.value.type, builtin.VectorType):
        _add_vector(writer, op)
    else:
        kind = op.kind.removeprefix("_")
        place, value = writer.typed(op.ptr), writer.typed(op.value)
        writer.let(op.result, f"atomicrmw {kind} {place}, {value} {scope(writer)}monotonic")


def _on_host(writer: FunctionWriter, op: LLVMAtomicRMWOp) -> None:
    type_ = writer.type(op.value)
    current = writer.new(f"load {type_}, {writer.typed(op.ptr)}{_alignment(op.value.type, writer)}")
    value = writer.get(op.value)
    if op.kind in _EXTREMA:
        new = writer.call(f"llvm.{_EXTREMA[op.kind]}.{type_}", type_, [(type_, current), (type_, value)])
    elif is_short(op.value, writer.target):
        wide = [widened(writer, item) for item in (current, value)]
        new = rounded(writer, writer.new(f"fadd float {wide[0]}, {wide[1]}"))
    else:
        new = writer.new(f"{_ON_HOST[op.kind]} {type_} {current}, {value}")
    writer.line(f"store {type_} {new}, {writer.typed(op.ptr)}{_alignment(op.value.type, writer)}")
    writer.bind(op.result, current)


def _alignment(type_: Attribute, writer: FunctionWriter) -> str:
    """Return the alignment of what is moved: a vector has that of its elements on the host."""
    return ", align 4" if isinstance(type_, builtin.VectorType) and not writer.target.is_device else ""


def _add_vector(writer: FunctionWriter, op: LLVMAtomicRMWOp) -> None:
    """Add two or four ``f32`` at once by inline PTX, as LLVM has no operation for it."""
    (count,) = op.value.type.get_shape()  # type: ignore[attr-defined]
    results = ", ".join(f"${number}" for number in range(count))
    values = ", ".join(f"${number}" for number in range(count + 1, 2 * count + 1))
    text = f"atom.global.v{count}.f32.add {{{results}}}, [${count}], {{{values}}};"
    constraints = ",".join(["=f"] * count + ["l"] + ["f"] * count)
    arguments = [writer.typed(op.ptr)]
    for number in range(count):
        arguments.append("float " + writer.new(f"extractelement {writer.typed(op.value)}, i32 {number}"))
    struct = "{ " + ", ".join(["float"] * count) + " }"
    sums = writer.new(f'call {struct} asm sideeffect "{text}", "{constraints},~{{memory}}"({", ".join(arguments)})')
    vector_text, type_ = "poison", writer.type(op.result)
    for number in range(count):
        part = writer.new(f"extractvalue {struct} {sums}, {number}")
        vector_text = writer.new(f"insertelement {type_} {vector_text}, float {part}, i32 {number}")
    writer.bind(op.result, vector_text)


def compare_exchange(writer: FunctionWriter, op: CompareExchangeOp) -> None:
    """Write the new element where the expected one is."""
    operands = ", ".join(writer.typed(value) for value in op.operands)
    writer.let(op.result, f"cmpxchg {operands} {scope(writer)}monotonic monotonic")


def extract_value(writer: FunctionWriter, op: llvm.ExtractValueOp) -> None:
    """Return a field of a struct."""
    (number,) = op.position.get_values()
    writer.let(op.res, f"extractvalue {writer.typed(op.container)}, {number}")


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
        "llvm.atomicrmw": atomic_rmw,
        "llvm.cmpxchg": compare_exchange,
        "llvm.extractvalue": extract_value,
    }
)
