"""Sharding origins as attributes of ops, arguments and results.

Mirrors source_sharding.cc::saveShardingOriginsOnModule.
"""

from __future__ import annotations

from typing import Any

from shardy_py.ir.graph.data_flow import edge_user
from shardy_py.ir.graph.op_names import CONSTRAINT, DATA_FLOW_EDGE, MANUAL_COMPUTATION
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import entry_block
from shardy_py.transforms.debug_info.function_attributes import function_dictionaries, update_function
from shardy_py.transforms.debug_info.origins import (
    ORIGIN_NAME,
    OriginTable,
    ShardingOrigin,
    as_dictionary,
    ops_named,
    renamed,
    returned_position,
)

ORIGINS = "sdy.sharding_origins"


def save_origins(program: Program, table: OriginTable) -> None:
    """Set the attributes of all values that are still there; an annotation calls its own axes ``self``."""
    for function in program.functions.values():
        _save_function(function, table)
    for op in program.walk():
        if op.results:
            _save_results(op, table)
    for op in ops_named(program, CONSTRAINT):
        _call_self(op, op.attributes.get(ORIGIN_NAME, ""))
    for function in program.functions.values():
        _call_function_self(function)
    for op in ops_named(program, MANUAL_COMPUTATION):
        _call_edges_self(op)


def _save_function(function: Op, table: OriginTable) -> None:
    block = entry_block(function)
    if block is None:
        return
    arguments = {
        argument.index: {ORIGINS: as_dictionary(table.of_value[argument.id])}
        for argument in block.arguments
        if argument.id in table.of_value
    }
    update_function(function, "arg_attrs", arguments)
    if block.last is None:
        return
    returned = block.last.operands
    results: dict[int, dict[str, Any]] = {}
    for value in returned:
        origins = table.of_value.get(value.id)
        position = returned_position(value, returned, block.last)
        if origins is not None and position is not None:
            results[position] = {ORIGINS: as_dictionary(origins)}
    update_function(function, "res_attrs", results)


def _save_results(op: Op, table: OriginTable) -> None:
    found = [table.of_value.get(value.id) for value in op.results]
    if all(origins is None for origins in found):
        return
    if op.name in (CONSTRAINT, DATA_FLOW_EDGE):
        op.attributes[ORIGINS] = as_dictionary(found[0] or {})
        return
    old = op.attributes.get(ORIGINS)
    kept = old if isinstance(old, tuple) else ({},) * len(found)
    op.attributes[ORIGINS] = tuple(
        [before if now is None else as_dictionary(now) for before, now in zip(kept, found, strict=True)]
    )


def _call_self(op: Op, name: str) -> None:
    origins = op.attributes.get(ORIGINS)
    if isinstance(origins, dict):
        op.attributes[ORIGINS] = renamed(origins, name)


def _call_function_self(function: Op) -> None:
    for name, kind in (("arg_attrs", "input"), ("res_attrs", "output")):
        updates = {
            index: {ORIGINS: renamed(item[ORIGINS], str(ShardingOrigin(kind, index)))}  # type: ignore[arg-type]
            for index, item in enumerate(function_dictionaries(function, name))
            if ORIGINS in item
        }
        update_function(function, name, updates)


def _call_edges_self(op: Op) -> None:
    name = op.attributes.get(ORIGIN_NAME, "")
    for kind, values in (("input", op.regions[0].block.arguments), ("output", op.results)):
        for value in values:
            edge = edge_user(value)
            if edge is not None:
                _call_self(edge, f"{name}_{kind}: {value.index}")
