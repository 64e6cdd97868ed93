"""Checks of a whole kernel module: calls, accesses, values of regions, definitions before uses, and endless loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from xdsl.dialects import arith, builtin, func, llvm, scf, tensor
from xdsl.ir import Attribute, Operation, Region
from xdsl.traits import NoTerminator

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.kernels.dialect.memory_ops import AtomicRMWOp, PredicatedExtractOp, PredicatedInsertOp, ShuffleReduceOp
from shardy_py.kernels.dialect.ops import LoopOp, PureCallOp, YieldOp
from shardy_py.kernels.dialect.tile_ops import MaterializeOp, ReduceOp
from shardy_py.kernels.locations import file_line
from shardy_py.kernels.opt.dominance import undominated_uses

Signature = tuple[str, list[Attribute], list[Attribute]]
Access = tensor.ExtractOp | tensor.InsertOp | PredicatedExtractOp | PredicatedInsertOp | AtomicRMWOp


def check_ops(module: builtin.ModuleOp, functions: Mapping[str, Any], name: str) -> None:
    """Check calls, accesses, the values of regions, and loops of a module that a user wrote.

    Args:
        module: The module.
        functions: Its functions by name.
        name: The name of its file.

    Raises:
        VerificationError: a function is called that there is not, with other types than its own, or by itself; a value
            is used where it is not defined; an index is missing; a block is empty; a region gives other types than its
            op; a size is not known; a loop has no end.
    """
    problems = [
        Diagnostic("malformed-kernel", message, file_line(op) or name, op.name)
        for op in module.walk()
        for message in _problems(op, functions)
    ]
    problems += [
        Diagnostic("malformed-kernel", f"operand {number} is not defined there", file_line(op) or name, op.name)
        for op, number in undominated_uses(module)
    ]
    problems += _recursions(functions, name)
    if problems:
        raise VerificationError(*problems)


def _problems(op: Operation, functions: Mapping[str, Any]) -> Iterator[str]:
    for result in (*op.results, *(argument for region in op.regions for argument in _arguments(region))):
        if isinstance(result.type, builtin.TensorType) and builtin.DYNAMIC_INDEX in result.type.get_shape():
            yield f"{result.type} has a size that is not known; buffers of kernels have fixed sizes"
    blocks = () if op.has_trait(NoTerminator) else (block for region in op.regions for block in region.blocks)
    if any(block.last_op is None for block in blocks):
        yield "a block has no op that ends it"
    for attributes in _attribute_sets(op):
        if (range_ := attributes.get("xla.range")) is not None and not _is_range(range_):
            yield f"xla.range = {range_} is not a least and a greatest integer"
    signature = _signature(op)
    if signature is not None:
        yield from _wrong_call(*signature, functions)
    if isinstance(op, Access):
        yield from _wrong_access(op)
    elif isinstance(op, ShuffleReduceOp) and op.max_distance.value.data < 0:
        yield f"{op.max_distance.value.data} is not a distance of lanes"
    elif isinstance(op, scf.ForOp) and (step := _constant(op.step.owner)) is not None and step <= 0:
        yield f"a loop of step {step} has no end"
    for region, types in _given(op):
        last = region.blocks[0].last_op if len(region.blocks) == 1 else None
        given = last.args if isinstance(last, scf.ConditionOp) else () if last is None else last.operands
        if isinstance(last, scf.YieldOp | scf.ConditionOp | YieldOp) and [value.type for value in given] != types:
            yield f"a region gives {_listed(value.type for value in given)} where {_listed(types)} is expected"


def _attribute_sets(op: Operation) -> Iterator[Mapping[str, Attribute]]:
    """Yield the attributes of an op and, of a function, those of each argument."""
    yield op.attributes
    if isinstance(op, func.FuncOp) and op.arg_attrs is not None:
        yield from (argument.data for argument in op.arg_attrs)


def _is_range(attribute: Attribute) -> bool:
    values = attribute.data if isinstance(attribute, builtin.ArrayAttr) else ()
    ends = [item.value.data for item in values if isinstance(item, builtin.IntegerAttr)]
    return len(ends) == len(values) == 2 and ends[0] <= ends[1]


def _arguments(region: Region) -> Iterator[Any]:
    return (argument for block in region.blocks for argument in block.args)


def _constant(op: Any) -> int | None:
    is_integer = isinstance(op, arith.ConstantOp) and isinstance(op.value, builtin.IntegerAttr)
    return op.value.value.data if is_integer else None


def _given(op: Operation) -> Iterator[tuple[Region, list[Attribute]]]:
    """Yield the regions of structured ops, each with the types of what its terminator gives."""
    types = [result.type for result in op.results]
    if isinstance(op, scf.WhileOp):
        yield op.before_region, types
        yield op.after_region, [value.type for value in op.arguments]
    elif isinstance(op, scf.IfOp | scf.IndexSwitchOp | scf.ForOp | LoopOp):
        for region in op.regions:
            if region.blocks or types:
                yield region, types


def _signature(op: Operation) -> Signature | None:
    """Return the function that an op calls, with the types of what it gives and takes."""
    results = [result.type for result in op.results]
    if isinstance(op, PureCallOp | func.CallOp):
        return op.callee.string_value(), [value.type for value in op.arguments], results
    if isinstance(op, llvm.CallOp) and op.callee is not None:
        return op.callee.string_value(), [value.type for value in op.args], results
    if isinstance(op, ShuffleReduceOp):
        return op.combiner.string_value(), 2 * [value.type for value in op.arguments], results
    if isinstance(op, ReduceOp):
        elements = [value.type for value in op.inits]
        return op.combiner.string_value(), 2 * elements, elements
    if isinstance(op, MaterializeOp):
        indices: list[Attribute] = [builtin.IndexType()] * len(op.map.results)
        types = [*(value.type for value in op.inputs), *indices]
        return op.callee.string_value(), types, [op.output.type.element_type]
    return None


def _wrong_call(
    name: str, taken: list[Attribute], given: list[Attribute], functions: Mapping[str, Any]
) -> Iterator[str]:
    function = functions.get(name)
    if function is None:
        yield f"the module has no function @{name}"
    elif isinstance(function, func.FuncOp):
        inputs, outputs = list(function.function_type.inputs), list(function.function_type.outputs)
        if (taken, given) != (inputs, outputs):
            yield (
                f"@{name} is a function from {_listed(inputs)} to {_listed(outputs)}, "
                f"called with {_listed(taken)} for {_listed(given)}"
            )


def _listed(types: Iterable[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"


def _wrong_access(op: Access) -> Iterator[str]:
    """Yield what is wrong with the indices or the type of an element that an op accesses."""
    if isinstance(op, tensor.ExtractOp | PredicatedExtractOp):
        array = op.tensor if isinstance(op, tensor.ExtractOp) else op.source
    else:
        array = op.dest
    type_ = array.type
    assert isinstance(type_, builtin.TensorType)
    if len(op.indices) != len(type_.get_shape()):
        yield f"{len(op.indices)} indices are not a place in {type_}"
    element = (
        op.result.type
        if isinstance(op, tensor.ExtractOp)
        else op.scalar.type
        if isinstance(op, tensor.InsertOp)
        else None
    )
    if element is not None and element != type_.element_type:
        yield f"{element} is not the type of the elements of {type_}"


def _recursions(functions: Mapping[str, Any], name: str) -> Iterator[Diagnostic]:
    """Yield the calls by which functions call themselves, in a way of any length."""
    done: set[str] = set()
    for first in functions:
        path: list[tuple[str, Iterator[tuple[Operation, str]]]] = []
        if first not in done:
            path.append((first, _calls(functions[first])))
        while path:
            caller, calls = path[-1]
            op, callee = next(calls, (None, ""))
            if op is None:
                done.add(caller)
                path.pop()
            elif callee in (around := [item for item, _ in path]):
                ring = " -> ".join([*around[around.index(callee) :], callee])
                message = f"recursive functions are not kernels: {ring}"
                yield Diagnostic("malformed-kernel", message, file_line(op) or name, op.name)
            elif callee in functions and callee not in done:
                path.append((callee, _calls(functions[callee])))


def _calls(function: Operation) -> Iterator[tuple[Operation, str]]:
    for op in function.walk():
        signature = _signature(op)
        if signature is not None:
            yield op, signature[0]
