"""Native modules to op graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from attrs import define, field
from jaxlib.mlir import ir

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.mlir.attributes import AttributeSets, NativeAttributes
from shardy_py.frontends.mlir.codec import Codec
from shardy_py.frontends.mlir.context import ensure_shardy
from shardy_py.frontends.mlir.load import location_text
from shardy_py.ir.garbage import no_garbage_collection
from shardy_py.ir.graph import Block, Op, Program, Region, Value

_MAX_DEPTH = 200
"""How deeply regions may nest; the walks over the op graph are recursive."""
_OUTLINE = "move what is inside to functions, and call them"


class OpHandle:
    """The native op of an op, and the operands it has there."""

    __slots__ = ("native", "operands")

    def __init__(self, native: Any, operands: Sequence[Value]) -> None:
        self.native = native
        self.operands = operands


class BlockHandle:
    """The native block of a block, and the ops it has there."""

    __slots__ = ("native", "ops")

    def __init__(self, native: ir.Block, ops: list[Op]) -> None:
        self.native = native
        self.ops = ops


@define
class Origin:
    """What `write_back` needs of a program.

    Args:
        module: The native module.
        codec: The codec of its context.
        sets: The attribute sets seen.
        name: What locations call a source without a name of its own.
        changed: The attributes that changed since the last `write_back`.
    """

    module: ir.Module
    codec: Codec
    sets: AttributeSets
    name: str = "-"
    changed: list[NativeAttributes] = field(factory=list)

    def attributes_of(self, native: ir.Operation) -> NativeAttributes:
        """Return the attributes of a native op as a mapping."""
        return NativeAttributes(self.sets.of(native), native, self.changed)


def import_native(
    module: ir.Module, *, name: str = "-", native_use_order: bool = False, into: Program | None = None
) -> Program:
    """Return the op graph of a module; see `import_module`."""
    ensure_shardy(module.context)
    program = into or Program()
    if into is not None:
        program.body = Block(program)
        program.edits += 1
    codec = Codec(module.context)
    program.origin = Origin(module, codec, AttributeSets(codec), name)
    program.attributes = program.origin.attributes_of(module.operation)
    program.locate = _locate
    with no_garbage_collection(keep=True):
        _Importer(program).run(module, native_use_order=native_use_order)
    return program


def _locate(op: Op) -> str:
    return "" if op.handle is None else location_text(op.handle.native.location, op.program.origin.name)


def _all_ops(module: ir.Module) -> Iterator[ir.Operation]:
    """Iterate over all ops, each before those inside.

    Iterating over blocks instead would make an object of the op's own class for each, and import those classes.
    """
    natives: list[ir.Operation] = []

    def visit(native: ir.Operation) -> ir.WalkResult:
        natives.append(native)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return iter(natives)


class _Importer:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._origin: Origin = program.origin
        self._values: dict[Any, Value] = {}
        self._forward: dict[Any, Value] = {}
        self._depth = 0

    def run(self, module: ir.Module, *, native_use_order: bool) -> None:
        natives = _all_ops(module)
        next(natives)
        self._fill(self._program.body, module.body, natives)
        for native, placeholder in self._forward.items():
            placeholder.replace_all_uses_with(self._values[native])
        if native_use_order:
            self._take_native_use_order()

    def _fill(self, block: Block, native_block: ir.Block, natives: Iterator[ir.Operation]) -> None:
        """Convert the ops of a block, which ``natives`` yields next."""
        self._depth += 1
        program, values, origin = self._program, self._values, self._origin
        types, changed, sets = origin.codec.types, origin.changed, origin.sets
        previous: Op | None = None
        ops: list[Op] = []
        for native in islice(natives, len(native_block.operations)):
            native_operands = native.operands
            try:
                operands = tuple([values[operand] for operand in native_operands])
            except KeyError:
                operands = tuple([self._operand(operand) for operand in native_operands])
            try:
                base = sets[tuple(native.attributes.items())]
            except TypeError:
                base = sets.of(native)
            native_results = native.results
            result_types = [types[type_] for type_ in native_results.types]
            attributes = NativeAttributes(base, native, changed)
            op = Op(program, native.name, operands, result_types, attributes, register_uses=False)
            op.handle = OpHandle(native, operands)
            for result, value in zip(native_results, op.results):  # noqa: B905 - strict costs, and they are as many
                values[result] = value
            if op.name == "func.func":
                self._add_function_results(op, native)
            regions = native.regions
            if len(regions):
                self._add_regions(op, regions, natives)
            for number, operand in enumerate(operands):
                if operand.uses:
                    operand.uses.append((op, number))
                else:
                    # Most values have one use, and a list made for it takes less memory than one that grows.
                    operand.uses = [(op, number)]
            op.parent, op.prev = block, previous
            if previous is None:
                block.first = op
            else:
                previous.next = op
            previous = op
            ops.append(op)
        block.last = previous
        block.handle = BlockHandle(native_block, ops)
        self._depth -= 1

    def _operand(self, native: ir.Value) -> Value:
        """Return an operand, or a placeholder for a value that is defined later."""
        found = self._values.get(native) or self._forward.get(native)
        if found is None:
            block = Block(self._program, [self._origin.codec.types[native.type]])
            found = self._forward[native] = block.arguments[0]
        return found

    def _add_function_results(self, op: Op, native: Any) -> None:
        types = ir.FunctionType(native.attributes["function_type"].value).results
        self._program.new_function_results(op, [self._origin.codec.types[type_] for type_ in types])

    def _add_regions(self, op: Op, regions: Any, natives: Iterator[ir.Operation]) -> None:
        if self._depth > _MAX_DEPTH:
            message = f"regions are nested more than {_MAX_DEPTH} deep"
            raise UnsupportedError(Diagnostic("nested-too-deeply", message, op.location, op.name, _OUTLINE))
        for native_region in regions:
            native_blocks = list(native_region.blocks)
            region = Region([self._new_block(native_block) for native_block in native_blocks])
            region.handle = native_region
            op.add_region(region)
            for block, native_block in zip(region.blocks, native_blocks, strict=True):
                self._fill(block, native_block, natives)

    def _new_block(self, native_block: ir.Block) -> Block:
        arguments = list(native_block.arguments)
        types = self._origin.codec.types
        block = Block(self._program, [types[argument.type] for argument in arguments])
        self._values.update(zip(arguments, block.arguments, strict=True))
        return block

    def _take_native_use_order(self) -> None:
        """Sort the uses of every value as MLIR has them; MLIR keeps the newest first."""
        ops = {op.handle.native: op for op in self._program.walk()}
        for native, value in self._values.items():
            if len(value.uses) > 1:
                uses = [(ops[use.owner.operation], use.operand_number) for use in native.uses]
                value.uses = uses[::-1]
