"""Facts about buffers, in the functions that take them, and arguments that are the same memory."""

from __future__ import annotations

from xdsl.dialects import builtin, func
from xdsl.ir import Attribute, Block, SSAValue

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
        found: dict[tuple[str, int], _Known] = {}
        while pending:
            caller = pending.pop()
            for op in caller.walk():
                if isinstance(op, PureCallOp | func.CallOp) and op.callee.string_value() in by_name:
                    callee = by_name[op.callee.string_value()]
                    if _pass_on(list(op.operands), callee, found):
                        pending.append(callee)


def _pass_on(operands: list[SSAValue], callee: func.FuncOp, found: dict[tuple[str, int], _Known]) -> bool:
    """Note what a call says of the callee's arguments; return whether that is news."""
    is_news = False
    for number, operand in enumerate(operands):
        if not isinstance(operand.type, builtin.TensorType):
            continue
        known = _buffer_of(operand)
        key = (callee.sym_name.data, number)
        if key in found:
            known = {name: value for name, value in found[key].items() if known.get(name) == value}
        if found.get(key) != known:
            is_news = True
            found[key] = known
            _set(callee, number, known)
    return is_news


def argument_attributes(function: func.FuncOp, number: int) -> _Known:
    """Return the attributes of an argument of a function."""
    if function.arg_attrs is None:
        return {}
    return dict(function.arg_attrs.data[number].data)


def _buffer_of(value: SSAValue) -> _Known:
    owner = value.owner
    function = owner.parent_op() if isinstance(owner, Block) else None
    if not isinstance(function, func.FuncOp):
        return {}
    number = list(function.body.block.args).index(value)  # type: ignore[arg-type]
    return {name: item for name, item in argument_attributes(function, number).items() if name in BUFFER}


def _set(function: func.FuncOp, number: int, known: _Known) -> None:
    count = len(function.body.block.args)
    attributes = [argument_attributes(function, place) for place in range(count)]
    attributes[number] = {
        **{name: value for name, value in attributes[number].items() if name not in BUFFER},
        **known,
    }
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
