"""Targets of the text of LLVM, and types and constants as it writes them for a target."""

from __future__ import annotations

import math
import struct
from typing import Any

from xdsl.dialects import builtin, llvm
from xdsl.ir import Attribute

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.dialect.constants import float_bits
from shardy_py.kernels.dialect.types import small_float
from shardy_py.kernels.passes.packed_elements import SHARED_SPACE, is_shared
from shardy_py.values import frozen

NVPTX_TRIPLE = "nvptx64-nvidia-cuda"
NVPTX_LAYOUT = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"


@frozen
class Target:
    """A processor that kernels are lowered for.

    Args:
        triple: LLVM's name of it; none for the host.
        layout: LLVM's layout of data; none for the host.
        has_bfloat: Whether ``bf16`` is a type of it; else these are integers of 16 bits that are rounded by integers.
        memory_space: The address space of buffers.
        has_libdevice: Whether functions are those of libdevice.
    """

    triple: str = ""
    layout: str = ""
    has_bfloat: bool = False
    memory_space: int = 0
    has_libdevice: bool = True

    @property
    def is_device(self) -> bool:
        """True if ids of threads come from registers; the host passes them."""
        return bool(self.triple)

    @property
    def pointer(self) -> str:
        """The type of pointers to buffers."""
        return f"ptr addrspace({self.memory_space})" if self.memory_space else "ptr"


HOST = Target()


def nvptx(*, has_libdevice: bool) -> Target:
    """Return the target of devices with ``sm_80`` or later.

    Args:
        has_libdevice: Whether the library of functions is there.
    """
    return Target(NVPTX_TRIPLE, NVPTX_LAYOUT, has_bfloat=True, memory_space=1, has_libdevice=has_libdevice)


_FLOATS: dict[type[Attribute], str] = {
    builtin.BFloat16Type: "bfloat",
    builtin.Float16Type: "half",
    builtin.Float32Type: "float",
    builtin.Float64Type: "double",
}


def type_text(type_: Attribute, target: Target, index_width: int) -> str:
    """Return a type as text.

    Args:
        type_: The type.
        target: The processor.
        index_width: The bits of an index.

    Raises:
        UnsupportedError: LLVM has no such type.
    """
    if isinstance(type_, builtin.IndexType):
        return f"i{index_width}"
    if isinstance(type_, builtin.IntegerType):
        return f"i{type_.width.data}"
    if isinstance(type_, builtin.BFloat16Type) and not target.has_bfloat:
        return "i16"
    if type(type_) in _FLOATS:
        return _FLOATS[type(type_)]
    if (small := small_float(type_)) is not None:
        return f"i{small.bitwidth}"
    if isinstance(type_, builtin.VectorType):
        return f"<{math.prod(type_.get_shape())} x {type_text(type_.element_type, target, index_width)}>"
    if isinstance(type_, builtin.ComplexType):
        return f"<2 x {type_text(type_.element_type, target, index_width)}>"
    if isinstance(type_, llvm.LLVMPointerType):
        return f"ptr addrspace({SHARED_SPACE})" if is_shared(type_) and target.is_device else target.pointer
    if isinstance(type_, llvm.LLVMStructType):
        return "{ " + ", ".join(type_text(item, target, index_width) for item in type_.types) + " }"
    if isinstance(type_, llvm.LLVMArrayType):
        return f"[{type_.size.data} x {type_text(type_.type, target, index_width)}]"
    raise UnsupportedError(Diagnostic("llvm-type", f"LLVM has no type for {type_}"))


def float_text(value: float, type_: Attribute, target: Target) -> str:
    """Return a float as text: by its bits, so that nothing is rounded twice."""
    if (small := small_float(type_)) is not None:
        return str(small.encode_bits(value))
    if isinstance(type_, builtin.Float16Type):
        return f"0xH{float_bits(value, str(type_)):04X}"
    if isinstance(type_, builtin.BFloat16Type):
        bits = float_bits(value, str(type_))
        return f"0xR{bits:04X}" if target.has_bfloat else str(bits)
    if isinstance(type_, builtin.Float32Type):
        (value,) = struct.unpack("<f", float_bits(value, str(type_)).to_bytes(4, "little"))
    return f"0x{float_bits(value, 'f64'):016X}"


def scalar_text(value: Any, type_: Attribute, target: Target) -> str:
    """Return a number as text."""
    if isinstance(type_, builtin.IntegerType | builtin.IndexType):
        if isinstance(type_, builtin.IntegerType) and type_.width.data == 1:
            return "true" if int(value) & 1 else "false"
        return str(int(value))
    return float_text(float(value), type_, target)


def constant_text(attribute: Attribute, target: Target, index_width: int) -> str:
    """Return the value of an attribute: a number, a vector, or an array.

    Raises:
        UnsupportedError: it holds no numbers.
    """
    if isinstance(attribute, builtin.IntegerAttr | builtin.FloatAttr):
        return scalar_text(attribute.value.data, attribute.type, target)
    if isinstance(attribute, builtin.DenseIntOrFPElementsAttr):
        type_ = attribute.get_element_type()
        element = type_text(type_, target, index_width)
        values = [scalar_text(value, type_, target) for value in attribute.get_values()]
        shape = attribute.get_shape()
        if len(values) == 1:
            values *= math.prod(shape)
        text = ", ".join(f"{element} {value}" for value in values)
        return f"<{text}>" if isinstance(attribute.type, builtin.VectorType) else f"[{text}]"
    raise UnsupportedError(Diagnostic("llvm-constant", f"the constant {attribute} holds no numbers"))
