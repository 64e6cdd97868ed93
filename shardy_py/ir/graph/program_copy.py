"""Copies of whole programs, with the same ids and no shared mutable part."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import count
from typing import Any

from shardy_py.ir.graph.program import Block, Op, Program, Region, Value


def copy_program(program: Program) -> Program:
    """Return a copy of a program with the same ids of ops and values, shardings and order of uses.

    The copy belongs to no native module: it cannot be written back. Locations are those of the program it was made of.
    """
    return _Copier(program).run()


class _Copier:
    """Copies one program; all values exist before the first use is entered."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._result = Program()
        self._values: dict[int, Value] = {}
        self._ops: dict[int, Op] = {}

    def run(self) -> Program:
        program, result = self._program, self._result
        self._fill(program.body, result.body)
        self._connect(program.body)
        result.attributes = copy(program.attributes)
        result.shardings = dict(program.shardings)
        result.rules = dict(program.rules)
        result.op_names = set(program.op_names)
        result.plugin_problems = program.plugin_problems
        result.has_foreign_types = program.has_foreign_types
        _take_ids(program, result)
        known = getattr(program.locate, "__self__", None)
        # A copy of a copy asks the same program.
        ops = known if isinstance(known, _OpsOf) else _OpsOf(program)
        result.locate, result.scope_of = ops.location, ops.scope
        return result

    def _fill(self, block: Block, new_block: Block) -> None:
        """Copy the ops of a block with their results and regions, without operands."""
        program, ops, values = self._result, self._ops, self._values
        previous: Op | None = None
        op = block.first
        while op is not None:
            # Without the initializers of ops and values, and without links that are set twice.
            result = Op.__new__(Op)
            result.program, result.id, result.name = program, op.id, op.name
            result.operands = result.regions = result.function_results = ()
            results = op.results
            if len(results) == 1:
                # Most ops have one.
                (value,) = results
                new_value = values[value.id] = Value.__new__(Value)
                new_value.id, new_value.type, new_value.owner, new_value.index = value.id, value.type, result, 0
                new_value.uses = []
                result.results = (new_value,)
            else:
                result.results = tuple(self._copy_values(results, result)) if results else ()
            attributes: Any = op.attributes
            # Without the detours of `copy`, which takes mappings that have no such method, too.
            result.attributes = attributes.copy() if hasattr(attributes, "copy") else copy(attributes)
            if op.regions:
                result.regions = tuple([self._copy_region(region, result) for region in op.regions])
            if op.function_results:
                result.function_results = self._copy_values(op.function_results, result)
            result.handle = None
            result.parent, result.prev, result.next = new_block, previous, None
            if previous is None:
                new_block.first = result
            else:
                previous.next = result
            previous = ops[op.id] = result
            op = op.next
        new_block.last = previous

    def _copy_values(self, values: Sequence[Value], owner: Op | Block) -> list[Value]:
        result = []
        for value in values:
            new_value = self._values[value.id] = Value(value.id, value.type, owner, value.index)
            result.append(new_value)
        return result

    def _copy_region(self, region: Region, parent: Op) -> Region:
        blocks = []
        for block in region.blocks:
            new_block = Block(self._result)
            new_block.arguments = self._copy_values(block.arguments, new_block)
            blocks.append(new_block)
        # Blocks may branch to later ones, so that all have arguments before the first op.
        for block, new_block in zip(region.blocks, blocks, strict=True):
            self._fill(block, new_block)
        result = Region(blocks)
        result.parent = parent
        return result

    def _connect(self, block: Block) -> None:
        """Give the copies of a block's ops their operands, and those of its values their uses."""
        ops, values = self._ops, self._values
        op = block.first
        new_op = self._first_of(block)
        while op is not None and new_op is not None:
            operands = op.operands
            # Most ops have one operand or two.
            if len(operands) == 1:
                new_op.operands = (values[operands[0].id],)
            elif len(operands) == 2:
                new_op.operands = values[operands[0].id], values[operands[1].id]
            elif operands:
                new_op.operands = tuple([values[value.id] for value in operands])
            results = op.results
            if len(results) == 1:
                # Most ops have one result, and most of these one use.
                uses = results[0].uses
                if len(uses) == 1:
                    user, number = uses[0]
                    new_op.results[0].uses = [(ops[user.id], number)]
                elif uses:
                    new_op.results[0].uses = [(ops[user.id], number) for user, number in uses]
            elif results:
                self._connect_uses(results)
            if op.function_results:
                self._connect_uses(op.function_results)
            for region in op.regions:
                for inner in region.blocks:
                    self._connect_uses(inner.arguments)
                    self._connect(inner)
            op, new_op = op.next, new_op.next

    def _first_of(self, block: Block) -> Op | None:
        return None if block.first is None else self._ops[block.first.id]

    def _connect_uses(self, values: Sequence[Value]) -> None:
        ops = self._ops
        for value in values:
            if value.uses:
                self._values[value.id].uses = [(ops[user.id], number) for user, number in value.uses]


def _take_ids(program: Program, copied: Program) -> None:
    """Continue the numbering of ids in both programs; a counter tells its position only by counting."""
    first = program.next_id()
    for item in (program, copied):
        item.next_id = count(first).__next__


class _OpsOf:
    """Locations and scopes of the ops of a copy, taken from the program that was copied."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._ops: dict[int, Op] | None = None
        self._locations: dict[int, str] = {}

    def location(self, op: Op) -> str:
        """Return the location of the op that an op is a copy of."""
        known = self._locations.get(op.id)
        if known is None:
            original = self._find(op)
            known = self._program.locate(op) if original is None else original.location
            self._locations[op.id] = known
        return known

    def scope(self, op: Op) -> str:
        """Return the scope of the op that an op is a copy of."""
        original = self._find(op)
        return original.scope if original is not None else ""

    def _find(self, op: Op) -> Op | None:
        if self._ops is None:
            self._ops = {item.id: item for item in self._program.walk()}
        return self._ops.get(op.id)
