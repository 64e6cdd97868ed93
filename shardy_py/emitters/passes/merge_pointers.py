"""Arguments of entry functions that are the same memory."""

from __future__ import annotations

from attrs import frozen
from xdsl.dialects import builtin, func
from xdsl.ir import Attribute

from shardy_py.emitters.entry.arguments import ENTRY, SLICE
from shardy_py.emitters.passes.base import KernelContext, functions
from shardy_py.emitters.passes.propagate_slice_indices import argument_attributes

NO_ALIAS = "llvm.noalias"


@frozen
class MergePointers:
    """Make arguments of one slice one argument; all that are left point to memory of their own."""

    name: str = "merge-pointers"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for function in functions(module):
            if ENTRY in function.attributes:
                _merge(function)


def _merge(function: func.FuncOp) -> None:
    block = function.body.block
    arguments = list(block.args)
    first: dict[Attribute, int] = {}
    kept: list[dict[str, Attribute]] = []
    for number, argument in enumerate(arguments):
        attributes = argument_attributes(function, number)
        slice_ = attributes.get(SLICE)
        if slice_ is not None and slice_ in first:
            argument.replace_all_uses_with(arguments[first[slice_]])
            block.erase_arg(argument)
            continue
        if slice_ is not None:
            first[slice_] = number
            attributes[NO_ALIAS] = builtin.UnitAttr()
        kept.append(attributes)
    types = [argument.type for argument in block.args]
    function.properties["function_type"] = builtin.FunctionType.from_lists(types, list(function.function_type.outputs))
    function.arg_attrs = builtin.ArrayAttr([builtin.DictionaryAttr(item) for item in kept])
