"""Facts about buffers, in the functions that take them, and arguments that are the same memory."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import builtin, func
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from shardy_py.kernels.dialect.ops import PureCallOp
from shardy_py.kernels.entry.arguments import ENTRY, SLICE
from shardy_py.kernels.passes.base import KernelContext, functions
from shardy_py.values import frozen

BUFFER = ("llvm.align", "llvm.dereferenceable", SLICE, "xla.invariant")
_Known = dict[str, Attribute]


@frozen
class PropagateSliceIndices:
    """Give arguments the attributes of the buffers that all callers pass: slice, alignment, size, constness."""

    name: str = "propagate-slice-indices"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        by_name = {function.sym_name.data: function for function in functions(module)}
        pending = [function for function in by_name.values() if ENTRY in function.attributes]
        facts: dict[tuple[str, int], _Known] = {}
        while pending:
            caller = pending.pop()
            for op in caller.walk():
                if isinstance(op, PureCallOp | func.CallOp) and op.callee.string_value() in by_name:
                    callee = by_name[op.callee.string_value()]
                    if _propagate(list(op.operands), callee, facts):
                        pending.append(callee)


def _propagate(operands: list[SSAValue], callee: func.FuncOp, facts: dict[tuple[str, int], _Known]) -> bool:
    """Record what a call says of the callee's arguments; return whether anything changes."""
    changed: dict[int, _Known] = {}
    for number, operand in enumerate(operands):
        if not isinstance(operand.type, builtin.TensorType):
            continue
        known = _buffer_of(operand)
        key = (callee.sym_name.data, number)
        if key in facts:
            known = {name: value for name, value in facts[key].items() if known.get(name) == value}
        if facts.get(key) != known:
            changed[number] = facts[key] = known
    if changed:
        _set(callee, changed)
    return bool(changed)


def argument_attributes(function: Operation, number: int) -> _Known:
    """Return the attributes of an argument of a function of ``func``, ``llvm`` or ``gpu``."""
    attributes = function.properties.get("arg_attrs") or function.attributes.get("arg_attrs")
    marks = attributes.data[number] if isinstance(attributes, builtin.ArrayAttr) else None
    return dict(marks.data) if isinstance(marks, builtin.DictionaryAttr) else {}


def _buffer_of(value: SSAValue) -> _Known:
    function = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    if not isinstance(value, BlockArgument) or not isinstance(function, func.FuncOp):
        return {}
    return {name: item for name, item in argument_attributes(function, value.index).items() if name in BUFFER}


def _set(function: func.FuncOp, known: Mapping[int, _Known]) -> None:
    """Replace what is known of the buffers of some arguments."""
    attributes = [argument_attributes(function, number) for number in range(len(function.body.block.args))]
    for number, facts in known.items():
        others = {name: value for name, value in attributes[number].items() if name not in BUFFER}
        attributes[number] = {**others, **facts}
    function.arg_attrs = builtin.ArrayAttr([builtin.DictionaryAttr(item) for item in attributes])


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
    merged: list[dict[str, Attribute]] = []
    for number, argument in enumerate(arguments):
        attributes = argument_attributes(function, number)
        slice_ = attributes.get(SLICE)
        if slice_ is not None and slice_ in first:
            argument.replace_all_uses_with(arguments[first[slice_]])
        elif slice_ is not None:
            first[slice_] = number
            attributes[NO_ALIAS] = builtin.UnitAttr()
        merged.append(attributes)
    function.arg_attrs = builtin.ArrayAttr([builtin.DictionaryAttr(item) for item in merged])
