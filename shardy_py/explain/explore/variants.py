"""Variants of a program: the same ops with other shardings, such as a plan writes, brought to the rows of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from attrs import evolve, field

from shardy_py.api.main_function import find_main
from shardy_py.api.summary import RESHARDS
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.explain.explain_reshard import ReshardExplainer
from shardy_py.explain.explore.program_rows import ProgramRows
from shardy_py.explain.explore.value_paths import before_reshards
from shardy_py.ir.graph.op_names import MESH
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.values import define, frozen


@frozen(eq=False)
class Variant:
    """The same program with other shardings.

    Args:
        name: Its name on the page.
        module: The program, in any form that `propagate` takes.
    """

    name: str
    module: Any


def rows_of_variant(name: str, rows: ProgramRows, program: Program) -> ProgramRows:
    """Return the rows of a page with the ids that their ops and values have in a variant.

    Args:
        name: The name of the variant.
        rows: The rows of the program that the page shows.
        program: The variant, finished.

    Raises:
        OptionError: it has other ops than the program.
    """
    pairs = _Pairs(name)
    main = find_main(rows.program)
    pairs.pair(main, find_main(program))
    for symbol, function in rows.program.functions.items():
        if function is not main and symbol in program.functions:
            pairs.pair(function, program.functions[symbol])
    values = rows.values.columns
    ids = [pairs.values.get(id_, -1) for id_ in values["id"]]
    return evolve(
        rows,
        program=program,
        values=evolve(rows.values, columns={**values, "id": ids}),
        row_of={pairs.ops[id_]: row for id_, row in rows.row_of.items() if id_ in pairs.ops},
        value_of={pairs.values[id_]: row for id_, row in rows.value_of.items() if id_ in pairs.values},
    )


@define(eq=False)
class _Pairs:
    """Ids in a program to those in a variant of it.

    Attributes:
        name: The name of the variant.
        ops: The ids of ops.
        values: The ids of values.
    """

    name: str
    ops: dict[int, int] = field(factory=dict)
    values: dict[int, int] = field(factory=dict)

    def pair(self, op: Op, other: Op) -> None:
        """Pair two ops, and what is inside of them."""
        self.ops[op.id] = other.id
        self._pair_values(op.results, other.results)
        self._pair_values(op.function_results, other.function_results)
        for region, other_region in zip(op.regions, other.regions, strict=False):
            for block, other_block in zip(region.blocks, other_region.blocks, strict=False):
                self._pair_values(block.arguments, other_block.arguments)
                for inner, match in zip_longest(_ops(block.ops), _ops(other_block.ops)):
                    self._check(inner, match)
                    self.pair(inner, match)
                    self._pair_operands(inner, match)

    def _check(self, expected: Op | None, other: Op | None) -> None:
        if (
            expected is None
            or other is None
            or expected.name != other.name
            or len(expected.operands) != len(other.operands)
        ):
            ops = " and ".join("nothing" if op is None else f"{op.name} ({op.location})" for op in (expected, other))
            message = f"{self.name} is not the same program: {ops} stand at the same position"
            hint = "give a module that differs in shardings and constraints only, as shardy plan --form mlir writes it"
            raise OptionError(Diagnostic("other-program", message, hint=hint))

    def _pair_operands(self, op: Op, other: Op) -> None:
        """Pair the constants that two ops take: passes may copy and merge them in other ways."""
        for operand, match in zip(map(before_reshards, op.operands), map(before_reshards, other.operands), strict=True):
            makers = operand.defining_op, match.defining_op
            if makers[0] is not None and makers[1] is not None and not makers[0].operands:
                self.ops.setdefault(makers[0].id, makers[1].id)
                self._pair_values(makers[0].results, makers[1].results)

    def _pair_values(self, values: Sequence[Value], others: Sequence[Value]) -> None:
        for value, other in zip(values, others, strict=False):
            self.values.setdefault(value.id, other.id)


def _ops(ops: Iterable[Op]) -> Iterator[Op]:
    """Yield the ops that take tensors, without communication."""
    return (op for op in ops if op.operands and op.name not in RESHARDS and op.name != MESH)


def common_slots(rows: ProgramRows, variant: ProgramRows, explainer: ReshardExplainer, names: list[str]) -> list[int]:
    """Return the slots of a variant as slots of the page; those that the page does not have are added to its names.

    Args:
        rows: The rows of the page.
        variant: The same rows with the ids of the variant.
        explainer: The explainer of the variant.
        names: The names of the slots of the page.
    """
    slot_of = explainer.session.problem.slot_of
    known = {
        slot_of[id_]: slot
        for id_, slot in zip(variant.values["id"], rows.values["slot"], strict=True)
        if slot >= 0 and id_ in slot_of
    }
    numbers = []
    for slot in range(len(explainer.session.problem.slot_values)):
        if slot not in known:
            known[slot] = len(names)
            names.append(explainer.labels.value(slot))
        numbers.append(known[slot])
    return numbers


_SLOT_COLUMNS = {
    "moves": ("slot", "source"),
    "refusals": ("slot", "source", "obstacle"),
    "annotations": ("slot", "owner"),
}


def with_common_slots(replay: dict[str, Any], numbers: Sequence[int], count: int) -> dict[str, Any]:
    """Return the replay of a variant by the slots of the page.

    Args:
        replay: The replay, by the slots of the variant.
        numbers: The slot of the page for each slot of the variant.
        count: The number of slots of the page.
    """
    start = [-1] * count
    # The last slot of a problem stands for all values that cannot be sharded.
    for number, sharding in zip(numbers, replay["start"], strict=False):
        start[number] = sharding
    updates: Mapping[str, list[Any]] = replay["updates"]
    changes = [[item if at % 2 else numbers[item] for at, item in enumerate(changed)] for changed in updates["changes"]]
    tables = {
        name: {
            **replay[name],
            **{column: [numbers[slot] if slot >= 0 else slot for slot in replay[name][column]] for column in columns},
        }
        for name, columns in _SLOT_COLUMNS.items()
    }
    return {**replay, "start": start, "updates": {**updates, "changes": changes}, **tables}
