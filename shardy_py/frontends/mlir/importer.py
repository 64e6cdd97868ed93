"""Native modules to op graphs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from jaxlib.mlir import ir

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.mlir.attributes import AttributeSet, AttributeSets, NativeAttributes
from shardy_py.frontends.mlir.bytecode import BytecodeReader
from shardy_py.frontends.mlir.codec import Codec, is_plain
from shardy_py.frontends.mlir.context import ensure_shardy, location_text, scope_text
from shardy_py.frontends.mlir.kept_tables import KEPT, Tables
from shardy_py.frontends.mlir.native_ops import BlockHandle, NativeProgram
from shardy_py.frontends.mlir.native_reader import NativeReader, has_large_constants, native_values
from shardy_py.ir.graph.foreign_types import shardy_name
from shardy_py.ir.graph.op_names import FUNCTION, RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.types import OpaqueType, Type
from shardy_py.ir.graph.verify import MAX_REGION_DEPTH
from shardy_py.support.gc_pause import no_garbage_collection
from shardy_py.support.identity import identity

_UNKNOWN = OpaqueType("?")
_OUTLINE = "move what is inside to functions, and call them"


def import_native(
    module: ir.Module, *, name: str = "-", native_use_order: bool = False, into: Program | None = None
) -> Program:
    """Return the op graph of a module; see `import_module`."""
    ensure_shardy(module.context)
    program = into or Program()
    if into is not None:
        program.body = Block(program)
        program.index.invalidate()
    codec = Codec(module.context)
    program.origin = NativeProgram(module, codec, AttributeSets(codec), name)
    program.attributes = program.origin.attributes_of(module.operation)
    program.locate, program.scope_of = partial(_locate, name), _scope
    with no_garbage_collection(keep=True):
        _Importer(program, module).run(module)
        program.has_foreign_types = None if codec.types.has_foreign else False
        if native_use_order:
            _take_native_use_order(program)
    return program


def _locate(name: str, op: Op) -> str:
    """Return the place of an op in a file; its name where it has no place, as an instruction of HLO.

    Args:
        name: The name of a file that has none of its own.
        op: The op.
    """
    native = _native(op)
    if native is None:
        return ""
    return location_text(native.location, name) or scope_text(native.location)


def _scope(op: Op) -> str:
    native = _native(op)
    return "" if native is None else scope_text(native.location)


def _native(op: Op) -> Any:
    # A copy that was not written yet is where its original is.
    return op.handle.native if op.handle is not None else getattr(op.attributes, "model_native", None)


def _all_ops(module: ir.Module) -> list[ir.Operation]:
    """Return all ops, each before those inside.

    Iterating over blocks instead would make an object of the op's own class for each, and import those classes.
    """
    natives: list[ir.Operation] = []
    append, go_on = natives.append, ir.WalkResult.ADVANCE

    def visit(native: ir.Operation) -> ir.WalkResult:
        append(native)
        return go_on

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return natives


def _reader(module: ir.Module, natives: Sequence[ir.Operation]) -> BytecodeReader | NativeReader:
    """Return the reader of a module: of its bytecode, if it is not too large and MLIR writes that version."""
    if not has_large_constants(natives):
        with suppress(ValueError):
            return BytecodeReader(module)
    return NativeReader(module)


class _BytecodeTables:
    """The meaning of the numbers in the bytecode, learnt where each of them comes first, unless it is kept."""

    __slots__ = (
        "_all_sets",
        "_attribute_names",
        "_decoded_types",
        "_function_results",
        "_op_names",
        "_types",
        "names",
        "result_types",
        "sets",
        "tables",
    )

    def __init__(self, program: Program, tables: Tables) -> None:
        origin: NativeProgram = program.origin
        self.tables = tables
        self.names = tables.names
        self.sets: dict[int, AttributeSet] = {}
        self.result_types = dict(tables.result_types)
        self._types = dict(tables.types)
        self._function_results: dict[ir.TypeAttr, list[Type]] = {}
        self._decoded_types = origin.codec.types
        self._all_sets = origin.sets
        self._op_names = program.op_names
        self._op_names.update(self.names.values())
        self._attribute_names: set[str] = set()
        program.attribute_names = self._attribute_names

    def learn(
        self, native: ir.Operation, name: int, attributes: int, types: Any
    ) -> tuple[str, AttributeSet, Sequence[Type]]:
        """Return the name, attributes and types for the numbers of an op; unknown ones are read from the op."""
        if name not in self.names:
            known = self.names[name] = shardy_name(native.name)
            self._op_names.add(known)
        if attributes not in self.sets:
            found_set = self.sets[attributes] = self._all_sets.of(
                native, self.tables.contents_of(attributes), self.tables.kinds
            )
            self._attribute_names.update(found_set.native, found_set.decoded)
        if types not in self.result_types:
            self.result_types[types] = self._types_of(types, native.results)
            if self.tables.types.keys() >= set(types):
                self.tables.result_types[types] = self.result_types[types]
        return self.names[name], self.sets[attributes], self.result_types[types]

    @property
    def value_types(self) -> Sequence[Type]:
        """The types of all values that were read, and maybe others."""
        return [*self._types.values(), *self._decoded_types.values()]

    def function_results(self, type_: ir.TypeAttr) -> list[Type]:
        """Return the types of the results of a function of a type."""
        types = self._function_results.get(type_)
        if types is None:
            natives = ir.FunctionType(type_.value).results
            types = self._function_results[type_] = [self._decoded_types[native] for native in natives]
        return types

    def argument_types(self, native: ir.Block, numbers: Sequence[int]) -> Sequence[Type]:
        """Return the types of the arguments of a block."""
        return self._types_of(numbers, native.arguments) if numbers else ()

    def _types_of(self, numbers: Iterable[int], values: Sequence[ir.Value]) -> Sequence[Type]:
        """Return the types of values by their numbers, and ask the values for those that are not known."""
        known = self._types
        for index, number in enumerate(numbers):
            if number not in known:
                decoded = known[number] = self._decoded_types[values[index].type]
                if is_plain(decoded):
                    self.tables.types[number] = decoded
        return [known[number] for number in numbers]


class _Importer:
    __slots__ = ("_depth", "_forward", "_known", "_natives", "_ops", "_program", "_reader", "_values")

    def __init__(self, program: Program, module: ir.Module) -> None:
        self._program = program
        natives = _all_ops(module)
        self._natives = iter(natives)
        self._reader = _reader(module, natives)
        self._known = _BytecodeTables(program, KEPT.of(self._reader.tables))
        # The values in sight by their numbers, None for those to come, and what stands for them until then.
        self._values: list[Value | None] = []
        self._forward: dict[int, Value] = {}
        self._ops: list[Op] = []
        self._depth = 0

    def run(self, module: ir.Module) -> None:
        """Convert the whole module."""
        self._reader.block()
        next(self._reader.ops(1))
        next(self._natives)
        self._reader.number()
        self._values = [None] * self._reader.number()
        count, _ = self._reader.block()
        self._fill(self._program.body, module.body, count, 0)
        self._program.index.start(self._ops)
        self._program.value_types = self._known.value_types

    def _fill(self, block: Block, native_block: ir.Block, count: int, position: int) -> int:
        """Convert the ops of a block.

        Args:
            block: The block.
            native_block: The native block.
            count: How many ops it has.
            position: The number of the first result.

        Returns:
            The number behind that of the last result.
        """
        self._depth += 1
        program, values, natives, known = self._program, self._values, self._natives, self._known
        names, sets, result_types = known.names, known.sets, known.result_types
        tables, forward, next_id = known.tables, self._forward, program.next_id
        kind_of_numbers = tables.kinds_by_numbers.get
        previous: Op | None = None
        ops: list[Op] = []
        all_ops = self._ops
        records = self._reader.ops(count)
        for (name, attributes, types, operand_numbers, regions), native in zip(records, natives):  # noqa: B905 - endless
            try:
                op_name, base, op_result_types = names[name], sets[attributes], result_types[types]
            except KeyError:
                op_name, base, op_result_types = known.learn(native, name, attributes, types)
            operands: tuple[Value, ...]
            numbers: Hashable
            if len(operand_numbers) == 1:
                value = values[operand_numbers[0]] or self._operand(operand_numbers[0])
                operands = (value,)
                numbers = name, attributes, types, identity(value.type)
            elif len(operand_numbers) == 2:
                value = values[operand_numbers[0]] or self._operand(operand_numbers[0])
                second = values[operand_numbers[1]] or self._operand(operand_numbers[1])
                operands = value, second
                numbers = name, attributes, types, identity(value.type), identity(second.type)
            else:
                operands = tuple([values[number] or self._operand(number) for number in operand_numbers])
                numbers = (name, attributes, types, *[identity(value.type) for value in operands])
            # Without the initializers of ops, values and attributes, which take as long as all the rest.
            handle = NativeAttributes.__new__(NativeAttributes)
            handle.base = handle.key = base
            handle.native, handle.operands = native, operands
            kind = handle.kind = kind_of_numbers(numbers)
            handle.model = handle.overlay = None
            op = Op.__new__(Op)
            op.id = next_id()
            op.program, op.name, op.operands = program, op_name, operands
            op.attributes = op.handle = handle
            op.regions = op.function_results = ()
            op.parent, op.prev, op.next = block, previous, None
            if len(op_result_types) == 1:
                # This is nearly every op.
                value = values[position] = Value.__new__(Value)
                value.id, value.type, value.owner, value.index = op.id, op_result_types[0], op, 0
                value.uses = []
                op.results = (value,)
                position += 1
            elif op_result_types:
                op.results = _new_results(op, op_result_types)
                values[position : position + len(op_result_types)] = op.results
                position += len(op_result_types)
            else:
                op.results = ()
            if kind is None and base.kinds is not None and not forward:
                # With values to come, whose types are not known yet, it is found when it is asked for.
                handle.kind = tables.learn_kind(numbers, op, base.contents)
            all_ops.append(op)
            if regions:
                self._add_regions(op, isolated=bool(regions & 1))
            if op_name == FUNCTION:
                self._add_function_results(op)
            for number, operand in enumerate(operands):
                if operand.uses:
                    operand.uses.append((op, number))
                else:
                    # Most values have one use, and a list made for it takes less memory than one that grows.
                    operand.uses = [(op, number)]
            if previous is None:
                block.first = op
            else:
                previous.next = op
            previous = op
            ops.append(op)
        block.last = previous
        block.handle = BlockHandle(native_block, ops)
        self._depth -= 1
        return position

    def _operand(self, number: int) -> Value:
        """Return an operand, or a placeholder for a value that is defined later."""
        value = self._values[number] or self._forward.get(number)
        if value is None:
            value = self._forward[number] = Block(self._program, [_UNKNOWN]).arguments[0]
        return value

    def _add_function_results(self, op: Op) -> None:
        """Add the results of a function, with the types of what it returns; a declaration has its own type only."""
        for region in op.regions:
            for block in region.blocks:
                if block.last is not None and block.last.name == RETURN:
                    self._program.new_function_results(op, [value.type for value in block.last.operands])
                    return
        types = self._known.function_results(op.handle.base.natives()["function_type"])
        self._program.new_function_results(op, types)

    def _add_regions(self, op: Op, *, isolated: bool) -> None:
        if self._depth > MAX_REGION_DEPTH:
            message = f"regions are nested more than {MAX_REGION_DEPTH} deep"
            raise UnsupportedError(Diagnostic("nested-too-deeply", message, op.location, op.name, _OUTLINE))
        outside = self._values, self._forward
        if isolated:
            self._values, self._forward = [], {}
        op.regions = tuple([self._new_region(op, native_region) for native_region in op.handle.native.regions])
        self._values, self._forward = outside

    def _new_region(self, op: Op, native: ir.Region) -> Region:
        region = Region()
        region.parent, region.handle = op, native
        if not self._reader.number():
            return region
        values = self._values
        first = position = len(values)
        values.extend([None] * self._reader.number())
        for native_block in native.blocks:
            count, types = self._reader.block()
            block = Block(self._program, self._known.argument_types(native_block, types))
            block.parent = region
            region.blocks.append(block)
            values[position : position + len(types)] = block.arguments
            position = self._fill(block, native_block, count, position + len(types))
        if self._forward:
            self._replace_placeholders(first)
        del values[first:]
        return region

    def _replace_placeholders(self, first: int) -> None:
        """Replace forward references by the values of a region; their numbers begin with ``first``."""
        for number in [number for number in self._forward if number >= first]:
            value = self._values[number]
            assert value is not None
            self._forward.pop(number).replace_all_uses_with(value)


def _new_results(op: Op, types: Sequence[Type]) -> tuple[Value, ...]:
    next_id = op.program.next_id
    return tuple([Value(next_id() if index else op.id, type_, op, index) for index, type_ in enumerate(types)])


def _take_native_use_order(program: Program) -> None:
    """Sort the uses of every value as MLIR has them; MLIR keeps the newest first."""
    ops = {op.handle.native: op for op in program.walk()}
    for value, native in native_values(program):
        if len(value.uses) > 1:
            uses = [(ops[use.owner.operation], use.operand_number) for use in native.uses]
            value.uses = uses[::-1]
