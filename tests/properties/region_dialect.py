"""A toy dialect whose ops have regions, and the function of each op on arrays.

Values flow in and out of regions in all the ways that a dialect can describe, and in some that it does not: operands
on no edge, tables that a region captures, stacked outputs, edges of some results only, regions without any data flow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import shardy_py as sdy
from shardy_py.plugins import OpOperand

_ROUNDS = 2


class FirstResultCarried(sdy.ShardableDataFlowOpInterface):
    """A loop that names its first result only as the owner of an edge, and leaves all else to the defaults."""

    def get_op_result_edge_owners(self, op: Any) -> Any:
        return op.results[:1]

    def get_edge_sources(self, op: Any, owner: Any) -> Any:
        return [OpOperand(op, 0), OpOperand(op.regions[0].block.terminator, 0)]

    def get_edge_owner_from_target(self, op: Any, target: Any) -> Any:
        return op.results[0] if target.index == 0 else None

    def get_edge_owner_from_source(self, op: Any, source: Any) -> Any:
        return op.results[0] if source.number == 0 else None

    def get_non_edge_owner_targets(self, op: Any, owner: Any) -> Any:
        return [op.regions[0].block.arguments[0]]


def make_dialect() -> sdy.Dialect:
    """Return the dialect of the programs."""
    toy = sdy.Dialect("toy")
    pure, regions = [sdy.Pure], [sdy.RecursiveMemoryEffects]
    toy.op("toy.constant", traits=[sdy.ConstantLike, *pure], local=sdy.local_by_types)
    for name in ("half", "tanh"):
        toy.op(f"toy.{name}", traits=[sdy.Elementwise, *pure])
    for name in ("mean", "product"):
        toy.op(f"toy.{name}", traits=[sdy.Elementwise, *pure], rule="..., ... -> ...")
    toy.op("toy.matmul", rule="i k, k j -> i j", reduction="k", traits=pure)
    toy.op("toy.sum", rule="i j -> i", reduction="j", traits=pure)
    toy.op("toy.max", rule="i j -> i", reduction="j", combiner=sdy.Combiner.MAX, traits=pure)
    toy.op("toy.transpose", rule="i j -> j i", traits=pure)
    toy.op("toy.bias", rule="i j, j -> i j", traits=pure)
    toy.op("toy.cumsum", rule="i j -> i j", need_replication="j", traits=pure)
    toy.op("toy.lookup", rule="i j, t -> i j", need_replication="t", traits=pure)
    toy.op("toy.form", rule="i j -> i j", local=lambda op, shard: shard.copy(), traits=pure)
    toy.op("toy.flip", traits=pure)
    toy.op("toy.loop", data_flow=sdy.LoopDataFlow(), traits=regions)
    toy.op("toy.loop_table", data_flow=sdy.LoopDataFlow(first_operand=1), traits=regions)
    toy.op("toy.scan", data_flow=sdy.LoopDataFlow(carried=1), traits=regions)
    toy.op("toy.scan_first", data_flow=FirstResultCarried(), traits=regions)
    toy.op("toy.branch", data_flow=sdy.BranchDataFlow(), traits=regions)
    toy.op("toy.branch_edges", data_flow=sdy.BranchDataFlow(first_operand=1), traits=regions)
    toy.op("toy.unknown", traits=regions)
    toy.op("toy.fused", rule="..., ... -> ...", traits=regions)
    toy.op("toy.fused_scalars", traits=[sdy.Elementwise, *regions], rule="... -> ...")
    toy.op("toy.yield", traits=[sdy.IsTerminator, *pure])
    return toy


class Plugin:
    """The plugin of the dialect."""

    @sdy.hookimpl
    def shardy_register_dialects(self) -> list[sdy.Dialect]:
        return [make_dialect()]


def _as_tuple(returned: Any) -> tuple[Any, ...]:
    return returned if isinstance(returned, tuple) else (returned,)


def _loop(*values: Any, regions: Any) -> Any:
    for _ in range(_ROUNDS):
        values = _as_tuple(regions[0](*values))
    return values


def _loop_table(table: Any, *values: Any, regions: Any) -> Any:
    for _ in range(_ROUNDS):
        values = tuple(np.tanh(item + table.sum()) for item in _as_tuple(regions[0](*values)))
    return values


def _scan(carried: Any, rows: Any, regions: Any) -> Any:
    outputs = []
    for row in rows:
        carried, output = regions[0](carried, row)
        outputs.append(output)
    return carried, np.stack(outputs)


def _branch(condition: Any, *values: Any, regions: Any) -> Any:
    return regions[0 if np.asarray(condition).all() else 1](*values)


def _fused_scalars(value: Any, regions: Any) -> Any:
    return np.array([regions[0](np.asarray(item)) for item in value.ravel()]).reshape(value.shape)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "toy.constant": lambda op: np.full(op.results[0].shape, 0.75),
    "toy.half": lambda x: x / 2,
    "toy.tanh": np.tanh,
    "toy.mean": lambda x, y: (x + y) / 2,
    "toy.product": lambda x, y: np.tanh(x * y),
    "toy.matmul": lambda x, y: x @ y / 4,
    "toy.sum": lambda x: x.sum(1),
    "toy.max": lambda x: x.max(1),
    "toy.transpose": lambda x: x.T,
    "toy.bias": lambda x, y: x + y,
    "toy.cumsum": lambda x: np.tanh(x.cumsum(1)),
    "toy.lookup": lambda x, t: x + t[0] - t[-1],
    "toy.form": lambda x: x + 1,
    "toy.flip": lambda x: x[::-1],
    "toy.loop": _loop,
    "toy.loop_table": _loop_table,
    "toy.scan": _scan,
    "toy.scan_first": _scan,
    "toy.branch": _branch,
    "toy.branch_edges": _branch,
    "toy.unknown": lambda *values, regions: regions[0](*values),
    "toy.fused": lambda x, y, regions: regions[0](x, y),
    "toy.fused_scalars": _fused_scalars,
}
