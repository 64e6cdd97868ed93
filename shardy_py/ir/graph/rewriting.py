"""Rewrite a program: clone ops, regions and functions, move regions, and park ops.

A mapping tells what the copies use instead: original value id to new value. Values that are not in it are used as they
are. Uses are entered as MLIR enters them when it clones: an op's own before those of the ops in its regions.

Calls and functions are parked while propagation sees named computations in their place. An op that is restored is
still the one the frontend knows, so that writing the program back need not make a new one.

Mirrors utils.cc::cloneFuncRecursively.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.op_names import CALL
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.rule_attributes import hand_over_rule
from shardy_py.ir.graph.symbols import (
    ORIGINAL_FUNCTION_NAME,
    SYMBOL_NAME,
    SymbolTable,
    original_function_name,
    set_callee,
)
from shardy_py.ir.graph.walk import all_in_region
from shardy_py.sharding.tensor import symbol

ValueMapping = dict[int, Value]
"""Id of an original value to the value that stands for it in the copy."""


def clone_op(op: Op, mapping: ValueMapping) -> Op:
    """Return a copy of an op with all that is in it, in no block yet; its results are added to the mapping."""
    result = _clone_shallow(op, mapping)
    if op.operands:
        _use_operands(op, result, mapping)
    if op.regions:
        _clone_regions(op, result, mapping)
    return result


def clone_region(program: Program, region: Region, mapping: ValueMapping) -> Region:
    """Return a copy of a region; its block arguments and results are added to the mapping."""
    blocks = [_clone_block_header(program, block, mapping) for block in region.blocks]
    # All values exist before the first use is entered: an op may use one that is defined further down.
    pairs: list[tuple[Op, Op]] = []
    for block, new_block in zip(region.blocks, blocks, strict=True):
        _fill(block, new_block, mapping, pairs)
    for op, new_op in pairs:
        if op.operands:
            _use_operands(op, new_op, mapping)
        if op.regions:
            _clone_regions(op, new_op, mapping)
    return Region(blocks)


def _fill(block: Block, new_block: Block, mapping: ValueMapping, pairs: list[tuple[Op, Op]]) -> None:
    """Fill a block with copies of ops, without operands and regions; enter each pair of original and copy."""
    new_pairs = [(op, _clone_shallow(op, mapping)) for op in block.ops]
    new_block.fill([new_op for _, new_op in new_pairs])
    pairs += new_pairs


def clone_function_recursively(function: Op, symbols: SymbolTable) -> Op:
    """Return a copy of a function, in no block yet; it calls new copies of all functions that the original calls.

    The copies of the callees are entered into the table, each before its caller. Every copy remembers the name of the
    function it comes from.

    Raises:
        UnsupportedError: the function calls itself, directly or through others.
        VerificationError: a function that does not exist is called.
    """
    return _clone_function(function, symbols, ())


def _clone_function(function: Op, symbols: SymbolTable, callers: tuple[Op, ...]) -> Op:
    if function in callers:
        path = " -> ".join(symbol(op.attributes[SYMBOL_NAME]) for op in (*callers, function))
        message = f"the functions call each other in a circle: {path}"
        raise UnsupportedError(Diagnostic("recursion", message, function.location, function.name))
    result = clone_op(function, {})
    result.attributes[ORIGINAL_FUNCTION_NAME] = original_function_name(function)
    for call in [op for region in result.regions for op in all_in_region(region) if op.name == CALL]:
        callee = symbols.callee(call)
        set_callee(call, symbols.insert(_clone_function(callee, symbols, (*callers, function))))
    return result


def _clone_shallow(op: Op, mapping: ValueMapping) -> Op:
    """Return a copy without operands and regions."""
    program = op.program
    # Without __init__, which would look for what a copy has not.
    result = Op.__new__(Op)
    result.program = program
    result.id = program.next_id()
    result.name = op.name
    result.operands = ()
    results = op.results
    result.results = tuple(_clone_values(program, results, result, mapping, first_id=result.id)) if results else ()
    result.attributes = copy(op.attributes)
    result.regions = result.function_results = ()
    result.parent = result.prev = result.next = result.handle = None
    if program.rules:
        hand_over_rule(op, result)
    if op.id in program.call_sites:
        program.call_sites[result.id] = program.call_sites[op.id]
    if op.function_results:
        result.function_results = _clone_values(program, op.function_results, result, mapping)
    return result


def _use_operands(op: Op, result: Op, mapping: ValueMapping) -> None:
    result.operands = tuple([mapping.get(value.id, value) for value in op.operands])
    result.register_uses()


def _clone_regions(op: Op, result: Op, mapping: ValueMapping) -> None:
    for region in op.regions:
        result.add_region(clone_region(op.program, region, mapping))


def _clone_block_header(program: Program, block: Block, mapping: ValueMapping) -> Block:
    result = Block(program)
    result.arguments = _clone_values(program, block.arguments, result, mapping)
    return result


def _clone_values(
    program: Program, values: Sequence[Value], owner: Op | Block, mapping: ValueMapping, *, first_id: int | None = None
) -> list[Value]:
    """Return copies of values with the same shardings, and enter them into the mapping; the first may have its id."""
    table, originals, next_id = program.shardings, program.originals, program.next_id
    result = []
    for value in values:
        id_ = value.id
        new_value = Value(next_id() if first_id is None else first_id, value.type, owner, value.index)
        first_id = None
        result.append(new_value)
        mapping[id_] = new_value
        originals[new_value.id] = id_
        sharding = table.get(id_)
        if sharding is not None:
            table[new_value.id] = sharding
    return result


def move_region(source: Op, target: Op, *, terminator: str) -> Region:
    """Move the only region of an op to one that has none yet; ``source`` is left with an empty one.

    When a region comes back to where it was, so do the ops that ended its blocks there.

    Args:
        source: The op that loses its region.
        target: The op that gets it.
        terminator: The name of the ops that end its blocks there.
    """
    (region,) = source.take_regions()
    source.add_region(Region())
    target.add_region(region)
    for block in region.blocks:
        old = block.terminator
        if old is not None:
            # As in the reference, the new op enters the use lists before the old one leaves them.
            block.append(_new_terminator(old, terminator))
            old.erase()
    return region


def _new_terminator(old: Op, name: str) -> Op:
    for parked in pop_parked(old):
        if parked.name == name:
            return restore(parked, old.operands, {})
    new = Op(old.program, name, old.operands)
    park(new, old)
    return new


def park(stand_in: Op, *ops: Op) -> None:
    """Park ops that are about to be erased, until their stand-in is erased."""
    stand_in.program.stand_ins[stand_in.id] = ops


def pop_parked(stand_in: Op) -> tuple[Op, ...]:
    """Return the ops that are parked for a stand-in, and forget them; () if there are none."""
    return stand_in.program.stand_ins.pop(stand_in.id, ())


def restore(
    op: Op, operands: Iterable[Value], attributes: Mapping[str, Attribute], *, unchanged: Collection[str] = ()
) -> Op:
    """Restore a parked op with new operands and attributes, and without regions.

    Args:
        op: The op.
        operands: Its operands from now on.
        attributes: Its attributes from now on, but for those that are unchanged.
        unchanged: The names of those that it has already as they should be.
    """
    current = op.attributes
    for name in [name for name in current if name not in attributes and name not in unchanged]:
        del current[name]
    for name, value in attributes.items():
        current[name] = value
    op.replace_operands(operands)
    op.take_regions()
    return op
