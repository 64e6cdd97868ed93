"""The width of indices, and integers without a sign in their type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xdsl.dialects import arith, builtin, dlti, func, llvm
from xdsl.ir import Attribute, Operation

from shardy_py.kernels.dialect.types import INDEX
from shardy_py.kernels.entry.arguments import ENTRY
from shardy_py.kernels.fusion.fusion import bits_of
from shardy_py.kernels.passes.base import KernelContext, functions, retype_values, walk_ops
from shardy_py.kernels.passes.buffer_facts import argument_attributes
from shardy_py.kernels.passes.packed_elements import is_narrow
from shardy_py.values import frozen

LAYOUT = "dlti.dl_spec"
_MOST_OF_32_BITS = 1 << 31


@frozen
class ConvertIndexType:
    """Say how many bits an index has: 32, or 64 where a buffer has more elements than 32 bits with a sign can count."""

    name: str = "convert-index-type"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        entries = [function for function in functions(module) if ENTRY in function.attributes]
        element = min((bits for op in module.walk() for bits in _element_bits(op)), default=8)
        is_large = any(8 * size // element > _MOST_OF_32_BITS for entry in entries for size in _sizes(entry))
        width = 64 if is_large else 32
        entry = dlti.DataLayoutEntryAttr(INDEX, builtin.IntegerAttr(width, 32))
        module.attributes[LAYOUT] = dlti.DataLayoutSpecAttr(builtin.ArrayAttr([entry]))


def _element_bits(op: Operation) -> Iterator[int]:
    """Yield the bits of the elements that an op points to, or cuts out of a byte."""
    if isinstance(op, llvm.GEPOp):
        yield bits_of(str(op.elem_type))
    elif isinstance(op, arith.TruncIOp) and is_narrow(op.result.type):
        yield bits_of(str(op.result.type))


def _sizes(function: func.FuncOp) -> list[int]:
    """Return the bytes of the buffers that a function takes."""
    sizes = []
    for number in range(len(function.body.block.args)):
        size = argument_attributes(function, number).get("llvm.dereferenceable")
        if isinstance(size, builtin.IntegerAttr):
            sizes.append(size.value.data)
    return sizes


def index_width(module: builtin.ModuleOp) -> int:
    """Return the bits of an index in a module; 64 where it does not say."""
    spec = module.attributes.get(LAYOUT)
    if isinstance(spec, dlti.DataLayoutSpecAttr):
        for entry in spec.entries:
            if isinstance(entry, dlti.DataLayoutEntryAttr) and entry.key == INDEX:
                assert isinstance(entry.value, builtin.IntegerAttr)
                return entry.value.value.data
    return 64


@frozen
class Signless:
    """Drop the sign of integer types: from here on it is the ops that read a sign, or none."""

    name: str = "convert-to-signless"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for op in walk_ops(module.body):
            if isinstance(op, func.FuncOp):
                type_ = op.function_type
                inputs, outputs = map(signless, type_.inputs), map(signless, type_.outputs)
                op.properties["function_type"] = builtin.FunctionType.from_lists(list(inputs), list(outputs))
            retype_values(op, signless)


def signless(type_: Attribute) -> Attribute:
    """Return a type whose integers have no sign."""
    if isinstance(type_, builtin.IntegerType):
        return builtin.IntegerType(type_.width.data)
    if isinstance(type_, builtin.TensorType):
        return builtin.TensorType(signless(type_.element_type), type_.get_shape(), type_.encoding)
    if isinstance(type_, builtin.VectorType):
        element: Any = signless(type_.element_type)
        return builtin.VectorType(element, type_.get_shape())
    return type_
