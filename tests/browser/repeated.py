"""Large pages: the rows of a small one many times over, each copy as a layer of its main function."""

from __future__ import annotations

from typing import Any


def repeat(data: dict[str, Any], copies: int) -> dict[str, Any]:
    """Return the data of a page with copies of all ops, values, groups, transfers and updates.

    The first value of each copy's first op is also used by the next copy, so that the copies hang together.
    """
    counts = {name: len(next(iter(data[name].values()))) for name in ("ops", "values", "groups")}
    counts["slots"] = len(data["slots"])
    offset = _Offset(counts, copies)
    groups = {name: offset.column(column, _GROUPS.get(name)) for name, column in data["groups"].items()}
    main = data["groups"]["parent"].index(-1)
    for copy in range(1, copies):
        for group, parent in enumerate(data["groups"]["parent"]):
            if parent < 0:
                groups["parent"][copy * counts["groups"] + group] = main
    ops = {name: offset.column(column, _OPS.get(name)) for name, column in data["ops"].items()}
    for copy in range(1, copies):
        ops["inputs"][copy * counts["ops"] + counts["ops"] - 1].append((copy - 1) * counts["values"])
    return {
        **data,
        "ops": ops,
        "groups": groups,
        "values": {name: offset.column(column, _VALUES.get(name)) for name, column in data["values"].items()},
        "slots": data["slots"] * copies,
        "runs": [_run(run, offset) for run in data["runs"]],
    }


_OPS = {"group": "groups", "body": "groups", "inputs": "values", "outputs": "values", "id": "ops"}
_GROUPS = {"parent": "groups", "op": "ops"}
_VALUES = {"slot": "slots", "op": "ops", "id": "values"}
_TRANSFERS = {"value": "values", "users": "ops", "op": "ops"}
_MEMORY = {"op": "ops", "value": "values"}


class _Offset:
    """Copies of columns, in which numbers of rows are those of the copy."""

    def __init__(self, counts: dict[str, int], copies: int) -> None:
        self._counts, self._copies = counts, copies

    def column(self, column: list[Any], table: str | None) -> list[Any]:
        """Return a column with all copies; the table is that whose rows its numbers are."""
        step = 0 if table is None else self._counts[table]
        return [self.moved(item, copy * step) for copy in range(self._copies) for item in column]

    def moved(self, item: Any, by: int) -> Any:
        """Return a number of a row, or a list of them, in a copy."""
        if isinstance(item, list):
            return [self.moved(entry, by) for entry in item]
        return item + by if by and isinstance(item, int) and item >= 0 else item

    def table(self, columns: dict[str, list[Any]], tables: dict[str, str]) -> dict[str, list[Any]]:
        """Return a table with all copies."""
        return {name: self.column(column, tables.get(name)) for name, column in columns.items()}

    def changes(self, column: list[list[int]]) -> list[list[int]]:
        """Return the changes of updates: slots and shardings in turn."""
        step = self._counts["slots"]
        return [
            [number + copy * step if at % 2 == 0 else number for at, number in enumerate(pairs)]
            for copy in range(self._copies)
            for pairs in column
        ]


def _run(run: dict[str, Any], offset: _Offset) -> dict[str, Any]:
    replay, memory = run["replay"], run["memory"]
    updates = offset.table(replay["updates"], {"op": "ops"})
    updates["changes"] = offset.changes(replay["updates"]["changes"])
    offset._counts["updates"] = len(replay["updates"]["op"])
    moves = {"slot": "slots", "source": "slots", "update": "updates"}
    refusals = {"slot": "slots", "source": "slots", "obstacle": "slots", "op": "ops"}
    return {
        **run,
        "shardings": offset.column(run["shardings"], None),
        "local": offset.column(run["local"], None),
        "flops": offset.column(run["flops"], None),
        "transfers": offset.table(run["transfers"], _TRANSFERS),
        "memory": {**memory, **{name: offset.column(memory[name], _MEMORY.get(name)) for name in ("op", "bytes")}},
        "replay": {
            **replay,
            "start": offset.column(replay["start"], None),
            "updates": updates,
            "moves": offset.table(replay["moves"], moves),
            "refusals": offset.table(replay["refusals"], refusals),
            "annotations": offset.table(replay["annotations"], {"slot": "slots"}),
        },
    }
