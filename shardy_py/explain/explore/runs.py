"""One run of a page: the shardings that an order leads to, its transfers, its cost and the memory of a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import attrs
from attrs import field

from shardy_py.api.summary import sharding_of
from shardy_py.cost.communications import Uses, final_uses
from shardy_py.cost.estimates import Cost, OpCost
from shardy_py.cost.estimates.memory_timeline import MemoryTimeline
from shardy_py.cost.session import Evaluation
from shardy_py.explain.explore.program_rows import ProgramRows
from shardy_py.explain.explore.tables import Columns
from shardy_py.explain.explore.value_paths import before_reshards
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import all_values
from shardy_py.plugins import Registry
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen


@frozen(eq=False)
class RunRows:
    """The rows of a run.

    Args:
        rows: The program that the page shows.
        evaluation: The outcome of the order: a finished program with the same ids.
        cost: Its cost, whose transfers have numbers and names.
        registry: The definitions of ops.
        uses: The uses behind all communication of the values that were asked for.
    """

    rows: ProgramRows
    evaluation: Evaluation
    cost: Cost
    registry: Registry
    uses: dict[int, Uses] = field(factory=dict, init=False)

    def to_json(self) -> dict[str, Any]:
        """Return the run as plain lists and dictionaries."""
        program = self.evaluation.program
        shardings = _shardings(program, self.registry)
        tables, types = self.rows.tables, list(self.rows.tables.types.numbers)
        ids, type_numbers = self.rows.values["id"], self.rows.values["type"]
        value_shardings = [shardings.get(id_) for id_ in ids]
        local = [
            tables.bytes(types[type_], sharding) for type_, sharding in zip(type_numbers, value_shardings, strict=True)
        ]
        return {
            "shardings": [tables.number(sharding) for sharding in value_shardings],
            "local": local,
            "transfers": self._transfers().to_json(),
            "memory": memory_over_time(self.rows, self.cost.timeline),
            "seconds": None if self.cost.seconds.value is None else self._by_op(attrgetter("seconds")),
            "flops": self._by_op(attrgetter("flops")),
            "quantities": {name: attrs.asdict(quantity) for name, quantity in self.cost.quantities.items()},
            "notes": list(self.cost.notes),
        }

    def _by_op(self, amount: Callable[[OpCost], float | None]) -> list[float]:
        """Return a number of the computing at each row, in all runs."""
        per_op = [0.0] * len(self.rows.ops)
        for op_cost in self.cost.ops:
            row = self.rows.row_of.get(op_cost.op_id)
            if row is not None:
                per_op[row] += amount(op_cost) or 0.0
        return per_op

    def _transfers(self) -> Columns:
        columns = Columns.of(
            "kind", "value", "users", "op", "axes", "devices", "runs", "bytes", "seconds", "number", "where", "how"
        )
        strings = self.rows.strings
        ops = {op.id: op for op in self.evaluation.program.walk()}
        for transfer in self.cost.transfers:
            op = ops[transfer.op_id]
            columns.add(
                kind=strings(transfer.kind),
                value=self._moved(op),
                users=self._users(op),
                op=self.rows.row_of.get(op.id, -1),
                axes=strings(transfer.axes),
                devices=transfer.devices,
                runs=transfer.runs,
                bytes=transfer.bytes,
                seconds=transfer.seconds,
                number=transfer.number,
                where=strings(transfer.where),
                how=strings(transfer.how),
            )
        return columns

    def _moved(self, op: Op) -> int:
        """Return the row of the value that an op moves; -1 for none."""
        return self.rows.value_of.get(before_reshards(op.operands[0]).id, -1) if op.operands else -1

    def _users(self, op: Op) -> list[int]:
        """Return the rows of the ops that use the results of a transfer."""
        uses = [user for value in op.results for user, _ in final_uses(value, self.uses)]
        return sorted({self.rows.row_of[user] for user in uses if user in self.rows.row_of})


def _shardings(program: Program, registry: Registry) -> Mapping[int, TensorSharding | None]:
    """Return the shardings of the values of a finished program, by id."""
    values: list[Value] = list(all_values(program))
    for function in program.functions.values():
        values.extend(function.function_results)
    return {value.id: sharding_of(program, value, registry) for value in values}


def memory_over_time(rows: ProgramRows, timeline: MemoryTimeline) -> dict[str, Any]:
    """Return the bytes that a device holds at each step of the main function, and the tensors held.

    The most of them is the peak of the cost: there is one number for one memory.

    Args:
        rows: The program.
        timeline: The memory of the main function.
    """
    op_rows: list[int] = []
    for op in timeline.ops:
        # Communication has no row of its own: it stands at the op before it.
        op_rows.append(rows.row_of.get(op, op_rows[-1] if op_rows else -1))
    tensors = [tensor for tensor in timeline.tensors if tensor.value in rows.value_of]
    return {
        "op": op_rows,
        "bytes": list(timeline.bytes),
        "value": [rows.value_of[tensor.value] for tensor in tensors],
        "from": [tensor.start for tensor in tensors],
        "to": [tensor.stop for tensor in tensors],
        "held": [tensor.bytes for tensor in tensors],
    }
