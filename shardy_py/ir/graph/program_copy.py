"""Copies of whole programs, with the same ids and no shared mutable part."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import count

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
        # A comprehension would be one more function per level of regions.
        ops = []
        for op in block.ops:
            ops.append(self._copy_op(op))
        new_block.fill(ops)

    def _copy_op(self, op: Op) -> Op:
        result = Op.__new__(Op)
        result.program = self._result
        result.id = op.id
        result.name = op.name
        result.operands = ()
        results = op.results
        if len(results) == 1:
            # Most ops have one.
            (value,) = results
            new_value = self._values[value.id] = Value(value.id, value.type, result, 0)
            result.results = (new_value,)
        else:
            result.results = tuple(self._copy_values(results, result))
        result.attributes = copy(op.attributes)
        regions = op.regions
        result.regions = tuple([self._copy_region(region, result) for region in regions]) if regions else ()
        result.parent = result.prev = result.next = result.handle = None
        result.function_results = self._copy_values(op.function_results, result) if op.function_results else ()
        self._ops[op.id] = result
        return result

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
        while op is not None:
            new_op = ops[op.id]
            new_op.operands = tuple([values[value.id] for value in op.operands])
            for value in op.results:
                if value.uses:
                    values[value.id].uses = [(ops[user.id], number) for user, number in value.uses]
            if op.function_results:
                self._connect_uses(op.function_results)
            for region in op.regions:
                for inner in region.blocks:
                    self._connect_uses(inner.arguments)
                    self._connect(inner)
            op = op.next

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
