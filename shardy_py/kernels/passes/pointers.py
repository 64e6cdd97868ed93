"""Pointers to elements of buffers and of memory that the threads of a block share."""

from __future__ import annotations

from xdsl.dialects import builtin, llvm
from xdsl.ir import Attribute, SSAValue

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
