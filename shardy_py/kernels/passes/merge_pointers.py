"""Arguments of entry functions that are the same memory."""

from __future__ import annotations

from xdsl.dialects import builtin, func
from xdsl.ir import Attribute

from shardy_py.kernels.entry.arguments import ENTRY, SLICE
from shardy_py.kernels.passes.base import KernelContext, functions
from shardy_py.kernels.passes.propagate_slice_indices import argument_attributes
from shardy_py.values import frozen

NO_ALIAS = "llvm.noalias"


@frozen
class MergePointers:
    """Use the first argument of a slice in the place of all others, so that no two pointers in use are one memory.

    Arguments that are not used any more stay: callers pass a pointer for every parameter and result.
    """

    name: str = "merge-pointers"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for function in functions(module):
            if ENTRY in function.attributes:
                _merge(function)


def _merge(function: func.FuncOp) -> None:
    arguments = list(function.body.block.args)
    first: dict[Attribute, int] = {}
    found: list[dict[str, Attribute]] = []
    for number, argument in enumerate(arguments):
        attributes = argument_attributes(function, number)
        slice_ = attributes.get(SLICE)
        if slice_ is not None and slice_ in first:
            argument.replace_all_uses_with(arguments[first[slice_]])
        elif slice_ is not None:
            first[slice_] = number
            attributes[NO_ALIAS] = builtin.UnitAttr()
        found.append(attributes)
    function.arg_attrs = builtin.ArrayAttr([builtin.DictionaryAttr(item) for item in found])
