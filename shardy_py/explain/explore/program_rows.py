"""Rows of a program: its ops, arguments and results, its values, and the groups that it is folded into.

Collectives and reshards are no ops of the page: they stand on the edges, where they move data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import field

from shardy_py.api.summary import RESHARDS
from shardy_py.explain.explore.folding import Fold, Leaf, fold, visit, with_neighbours
from shardy_py.explain.explore.row_labels import Labeller, RowLabel, distinguish
from shardy_py.explain.explore.scopes import FORWARD, parse_scope
from shardy_py.explain.explore.tables import Columns, DistinctShardings, Interned
from shardy_py.explain.explore.updates import OPTIMIZER, find_updates
from shardy_py.explain.explore.value_paths import before_reshards, join_numbers, parse_path
from shardy_py.ir.graph.op_names import CALL, FUNCTION, MESH, RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.symbols import SYMBOL_NAME
from shardy_py.ir.graph.walk import entry_block
from shardy_py.plugins import Registry
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.values import define, frozen

OP, ARGUMENT, RESULT = 0, 1, 2
"""Kinds of rows: ops, arguments of functions, results of functions."""


@frozen(eq=False)
class Naming:
    """Names of the values of a program.

    Args:
        of_value: Value id to name.
        of_slot: Slot to name.
        slot_of: Value id to slot.
    """

    of_value: Mapping[int, str]
    of_slot: Mapping[int, str]
    slot_of: Mapping[int, int]

    def name(self, value: Value) -> str:
        """Return the name of a value, or ""."""
        slot = self.slot_of.get(value.id)
        name = None if slot is None else self.of_slot.get(slot)
        return name or self.of_value.get(value.id, "")


@define(eq=False)
class ProgramRows:
    """Rows of a program.

    Attributes:
        program: The program, finished.
        registry: The definitions of ops.
        naming: The names of its values.
        labeller: The labels of its ops.
        tables: Shardings and types.
        strings: The texts.
        ops: A row per op, argument and result.
        values: A row per value.
        groups: A row per group.
        row_of: Op id to row.
        value_of: Value id to row.
    """

    program: Program
    registry: Registry
    naming: Naming
    labeller: Labeller
    tables: DistinctShardings
    strings: Interned[str] = field(factory=Interned)
    ops: Columns = field(
        factory=lambda: Columns.of(
            *("id", "kind", "name", "group", "body", "callee", "inputs", "outputs", "location", "scope"),
            *("what", "where", "mark"),
        )
    )
    values: Columns = field(factory=lambda: Columns.of("id", "name", "type", "slot", "op"))
    groups: Columns = field(factory=lambda: Columns.of("name", "kind", "parent", "op"))
    row_of: dict[int, int] = field(factory=dict)
    value_of: dict[int, int] = field(factory=dict)
    _labels: dict[int, RowLabel] = field(factory=dict)
    _callee: str = ""

    @classmethod
    def of(
        cls, program: Program, main: Op, registry: Registry, naming: Naming, rules: Mapping[int, OpShardingRule]
    ) -> ProgramRows:
        """Return the rows of a program, its main function first.

        Args:
            program: The program, finished.
            main: Its main function.
            registry: The definitions of ops.
            naming: The names of its values.
            rules: Op id to sharding rule.
        """
        block = entry_block(main)
        arguments = {value.id: naming.name(value) for value in ([] if block is None else block.arguments)}
        updates = find_updates(program, main, registry, naming.name)
        labeller = Labeller(arguments, lambda op: rules.get(op.id), updates)
        rows = cls(program, registry, naming, labeller, DistinctShardings(dict(program.meshes)))
        functions = [op for op in program.body.ops if op.name == FUNCTION and op is not main]
        for function in (main, *functions):
            rows._callee = "" if function is main else f"@{function.attributes[SYMBOL_NAME]}"
            rows._function(function)
        rows._connect()
        rows._mark_equal_labels()
        return rows

    def _function(self, function: Op) -> None:
        name = f"@{function.attributes[SYMBOL_NAME]}"
        group = self._group(name, "function", -1, -1)
        block = entry_block(function)
        if block is None:
            return
        self._ends(block.arguments, ARGUMENT, "arguments", group)
        self._block(block, group, skipped=RETURN)
        self._ends(function.function_results, RESULT, "results", group)
        returned = block.last.operands if block.last is not None and block.last.name == RETURN else ()
        for result, value in zip(function.function_results, returned, strict=False):
            self.ops["inputs"][self.values["op"][self.value_of[result.id]]] = [value]

    def _ends(self, values: Sequence[Value], kind: int, name: str, parent: int) -> None:
        """Add rows for the arguments or the results of a function."""
        rows = {}
        leaves = []
        for value in values:
            row = self._row(-1, kind, name.removesuffix("s"), (), (value,), "", "")
            rows[row] = value
            path = join_numbers(parse_path(self.naming.name(value)))[:-1]
            leaves.append(Leaf(row, path if len(values) > _FEW else ()))
        if leaves:
            self._place(leaves, self._group(name, name, parent, -1))

    def _block(self, block: Block, group: int, *, skipped: str = "") -> None:
        """Add the ops of a block, and those of their regions where shardings flow through them."""
        leaves, bodies = [], []
        for op in block.ops:
            if op.name == MESH or op.name == skipped or (op.name in RESHARDS and op.operands):
                continue
            row = self._op(op)
            leaves.append(self._leaf(op, row))
            if op.regions and self.registry.get_data_flow(op) is not None:
                bodies.append((op, row))
        placed = with_neighbours(leaves)
        self._label(placed)
        self._place(placed, group)
        for op, row in bodies:
            body = self.ops["body"][row] = self._group(op.name, "loop", self.ops["group"][row], row)
            for number, region in enumerate(op.regions):
                inner = body
                if len(op.regions) > 1:
                    inner = self._group(f"region {number}", "region", body, -1)
                for block_of_region in region.blocks:
                    self._ends(block_of_region.arguments, ARGUMENT, "arguments", inner)
                    self._block(block_of_region, inner)

    def _op(self, op: Op) -> int:
        row = self._row(op.id, OP, op.name, tuple(op.operands), tuple(op.results), op.location, op.scope)
        self.row_of[op.id] = row
        self._labels[row] = self.labeller.label(op)
        if op.name == CALL:
            callee = f"@{op.attributes['callee'].name}"
            self.ops["callee"][row] = self.strings(callee)
            self.ops["name"][row] = self.strings(f"{CALL} {callee}")
        return row

    def _leaf(self, op: Op, row: int) -> Leaf:
        place = op.location.rpartition(":")[0]
        key = (op.name, tuple(self.tables.types(value.type) for value in op.results))
        scope = parse_scope(op.scope)
        updated = self.labeller.updates.parameters.get(op.id)
        if updated is not None:
            return Leaf(row, (OPTIMIZER, *join_numbers(updated)), place.rpartition("/")[2], key)
        return Leaf(row, scope.path, place.rpartition("/")[2], key, is_named=bool(scope.path or scope.primitive))

    def _label(self, leaves: Sequence[Leaf]) -> None:
        """Write the labels of ops; those without a name stack get the layers of their neighbours."""
        for leaf in leaves:
            label = self._labels[leaf.row]
            layers = () if leaf.is_named else tuple(name for name in leaf.path if name != FORWARD)
            where = "/".join(filter(None, (self._callee, *layers, label.where)))
            label = self._labels[leaf.row] = RowLabel(label.what, where)
            self.ops["what"][leaf.row] = self.strings(label.what)
            self.ops["where"][leaf.row] = self.strings(label.where)

    def _place(self, leaves: Sequence[Leaf], group: int) -> None:
        """Fold rows, and put them into their groups."""

        def enter(folded: Fold, parent: int) -> int:
            return self._group(folded.name, folded.kind, parent, -1)

        def leaf(op_leaf: Leaf, parent: int) -> None:
            self.ops["group"][op_leaf.row] = parent

        visit(fold(leaves), enter, leaf, parent=group)

    def _group(self, name: str, kind: str, parent: int, op: int) -> int:
        return self.groups.add(name=self.strings(name), kind=self.strings(kind), parent=parent, op=op)

    def _row(
        self,
        id_: int,
        kind: int,
        name: str,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        location: str,
        scope: str,
    ) -> int:
        row = len(self.ops)
        return self.ops.add(
            id=id_,
            kind=kind,
            name=self.strings(name),
            group=-1,
            body=-1,
            callee=-1,
            inputs=list(inputs),
            outputs=[self._value(value, row) for value in outputs],
            location=self.strings(location),
            scope=self.strings(scope),
            what=-1,
            where=-1,
            mark=-1,
        )

    def _value(self, value: Value, row: int) -> int:
        number = self.value_of[value.id] = self.values.add(
            id=value.id,
            name=self.strings(self.naming.name(value)),
            type=self.tables.types(value.type),
            slot=self.naming.slot_of.get(value.id, -1),
            op=row,
        )
        return number

    def _connect(self) -> None:
        """Put the numbers of values in the place of the inputs of rows."""
        inputs = self.ops["inputs"]
        for row, values in enumerate(inputs):
            inputs[row] = list(self._numbers(values))

    def _mark_equal_labels(self) -> None:
        """Mark the rows whose labels are equal."""
        texts = list(self.strings.numbers)
        outputs = [self.ops["outputs"][row] for row in self._labels]
        names = [texts[self.values["name"][values[0]]] if values else "" for values in outputs]
        for row, mark in zip(self._labels, distinguish(self._labels.values(), names), strict=True):
            self.ops["mark"][row] = self.strings(mark)

    def _numbers(self, values: Iterable[Value]) -> Iterator[int]:
        for value in values:
            number = self.value_of.get(before_reshards(value).id)
            if number is not None:
                yield number


_FEW = 12
"""Functions with more arguments than this show them in groups, by the names that JAX gives them."""
