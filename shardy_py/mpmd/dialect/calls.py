"""Calls of functions over several meshes: callees, callers, and functions with other arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.attributes import RawAttribute, SymbolRef
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.shardings import SHARDING
from shardy_py.ir.graph.types import Type, function_type
from shardy_py.mpmd.dialect.op_names import ALIASING_OUTPUT, CALL, FRAGMENT_CALL
from shardy_py.sharding.tensor import symbol


def callee_name(call: Op) -> str:
    """Return the name of the function that a call calls."""
    callee = call.attributes["callee"]
    return callee.name if isinstance(callee, SymbolRef) else str(callee).removeprefix("@")


def callee_of(call: Op) -> Op:
    """Return the function that a call calls.

    Raises:
        VerificationError: there is no such function.
    """
    function = call.program.functions.get(callee_name(call))
    if function is None:
        message = f"there is no function {symbol(callee_name(call))}"
        raise VerificationError(Diagnostic("unknown-function", message, call.location, call.name))
    return function


def calls_of(program: Program) -> dict[str, list[Op]]:
    """Return name of a function to the ops that call it, in program order."""
    calls: dict[str, list[Op]] = {}
    for op in program.walk():
        if op.name in (CALL, FRAGMENT_CALL):
            calls.setdefault(callee_name(op), []).append(op)
    return calls


def check_calls(program: Program) -> None:
    """Check that each ``mpmd.call`` has the operands and results of its function, which MLIR does not.

    Raises:
        VerificationError: one has not; all are named.
    """
    problems = []
    for op in program.walk():
        if op.name != CALL:
            continue
        function = callee_of(op)
        counts = len(block_of(function).arguments), len(function.function_results)
        if (len(op.operands), len(op.results)) != counts:
            name = symbol(callee_name(op))
            message = (
                f"a call of {name} has {len(op.operands)} operands and {len(op.results)} results; "
                f"the function has {counts[0]} arguments and {counts[1]} results"
            )
            problems.append(Diagnostic("call-signature", message, op.location, op.name, "pass what it takes"))
    if problems:
        raise VerificationError(*problems)


def callees_first(program: Program) -> list[Op]:
    """Return all functions, each after those that it calls with ``mpmd.call``."""
    functions, result, done = program.functions, [], set()

    def visit(name: str) -> None:
        if name in done or name not in functions:
            return
        done.add(name)
        for op in functions[name].walk():
            if op.name == CALL:
                visit(callee_name(op))
        result.append(functions[name])

    for name in functions:
        visit(name)
    return result


def block_of(function: Op) -> Block:
    """Return the body of a function."""
    return function.regions[0].block


def return_of(function: Op) -> Op:
    """Return the op that ends the body of a function."""
    terminator = block_of(function).terminator
    assert terminator is not None
    return terminator


def attributes_at(function: Op, name: str, count: int) -> list[dict[str, Any]]:
    """Return the attributes of the arguments or results of a function, one dictionary for each."""
    items: Sequence[dict[str, Any]] = function.attributes.get(name) or ({},) * count
    return [dict(item) for item in items]


def set_attributes_at(function: Op, name: str, items: Sequence[dict[str, Any]]) -> None:
    """Set the attributes of the arguments or results of a function."""
    if any(items):
        function.attributes[name] = tuple(map(_with_narrow_numbers, items))
    elif name in function.attributes:
        del function.attributes[name]


def _with_narrow_numbers(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes of an argument in which the number of an output has 32 bits, as JAX writes it."""
    number = attributes.get(ALIASING_OUTPUT)
    return dict(attributes) | ({ALIASING_OUTPUT: RawAttribute(f"{number} : i32")} if isinstance(number, int) else {})


def with_signature(
    function: Op,
    argument_types: Sequence[Type],
    result_types: Sequence[Type],
    *,
    argument_attributes: Sequence[dict[str, Any]],
    result_attributes: Sequence[dict[str, Any]],
) -> tuple[Op, Sequence[Value]]:
    """Put a function with other arguments and results in the place of one, and move its ops there.

    The old function stays with its arguments, whose uses the caller replaces before it erases the function.

    Returns:
        The new function, and the arguments of the old one.
    """
    program = function.program
    old_block = block_of(function)
    old_arguments = list(old_block.arguments)
    block = Block(program, argument_types)
    for op in list(old_block.ops):
        old_block.remove(op)
        block.append(op)
    attributes = copy(function.attributes)
    attributes["function_type"] = function_type(argument_types, result_types)
    new = Op(program, FUNCTION, (), (), attributes, [Region([block])])
    set_attributes_at(new, "arg_attrs", argument_attributes)
    set_attributes_at(new, "res_attrs", result_attributes)
    program.new_function_results(new, result_types)
    for values, items in ((block.arguments, argument_attributes), (new.function_results, result_attributes)):
        for value, item in zip(values, items, strict=True):
            if SHARDING in item:
                program.shardings[value.id] = item[SHARDING]
    program.body.insert_after(function, new)
    return new, old_arguments


def with_types(function: Op, argument_types: Sequence[Type], result_types: Sequence[Type]) -> Op:
    """Return a function with arguments and results of other types, which stands in the place of one."""
    new, old_arguments = with_signature(
        function,
        argument_types,
        result_types,
        argument_attributes=attributes_at(function, "arg_attrs", len(argument_types)),
        result_attributes=attributes_at(function, "res_attrs", len(result_types)),
    )
    for old, value in zip(old_arguments, block_of(new).arguments, strict=True):
        old.replace_all_uses_with(value)
    function.erase()
    return new


def with_returned(function: Op, values: Sequence[Value]) -> Op:
    """Return a function that returns other values, whose types are those of its results; itself if none differs."""
    types = [value.type for value in values]
    set_returned(function, values)
    if types == [value.type for value in function.function_results]:
        return function
    return with_types(function, [value.type for value in block_of(function).arguments], types)


def set_returned(function: Op, values: Sequence[Value]) -> None:
    """Make a function return other values, of the types of its results, unless `with_signature` follows."""
    old = return_of(function)
    new = Op(function.program, old.name, values, attributes=copy(old.attributes))
    block = block_of(function)
    block.insert_after(old, new)
    old.erase()


def replace_call(call: Op, operands: Sequence[Value], result_types: Sequence[Type]) -> Op:
    """Put a call with other operands and results in the place of one; the old one is left to be erased."""
    new = Op(call.program, call.name, operands, result_types, copy(call.attributes))
    assert call.parent is not None
    call.parent.insert_after(call, new)
    return new
