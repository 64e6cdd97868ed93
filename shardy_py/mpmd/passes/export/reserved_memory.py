"""Bytes that are live on a mesh while a fragment runs, besides its own operands.

Mirrors mpmd/transforms/export/mark_fragment_reserved_memory.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from typing import ClassVar

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import is_fragment, mesh_of, mpmd_functions
from shardy_py.mpmd.dialect.types import mesh_tensor_of, require_topology
from shardy_py.mpmd.passes.export.memory import (
    DONOR,
    bytes_per_device,
    function_argument_attributes,
    host_values,
)
from shardy_py.values import NoFields

RESERVED = "reserved_hbm_bytes"


class MarkFragmentReservedMemoryPass(NoFields):
    """Mark each fragment with the bytes per device that others hold on its mesh while it runs.

    An argument of the program is held to the end unless it was donated, any other value to its last use.
    """

    name: ClassVar[str] = "mpmd-mark-fragment-reserved-memory"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the fragments of all functions."""
        for function in mpmd_functions(program):
            for op, count in list(_reserved(function)):
                op.attributes[RESERVED] = RawAttribute(f"{count} : i64")


def _reserved(function: Op) -> Iterator[tuple[Op, int]]:
    """Yield each fragment with the bytes that are reserved while it runs."""
    topology, block, hosted = require_topology(function), block_of(function), host_values(function)
    last = {value.id: op for op in block.ops for inner in op.walk() for value in inner.operands}
    attributes = function_argument_attributes(function)
    live: dict[int, tuple[str, Fraction]] = {}

    def hold(value: Value) -> None:
        type_ = mesh_tensor_of(value)
        if type_ is not None and value.id not in hosted:
            live[value.id] = type_.mesh, bytes_per_device(type_, topology)

    # As in the reference, a buffer that an output takes over stays the argument's.
    donated = {value.id for value in block.arguments if DONOR in attributes[value.id]}
    for value in block.arguments:
        if value.id not in donated or value.id in last:
            hold(value)
    undonated = {value.id for value in block.arguments} - donated
    for op in block.ops:
        if is_fragment(op):
            operand_ids = {value.id for value in op.operands}
            sizes = [size for id_, (mesh, size) in live.items() if mesh == mesh_of(op) and id_ not in operand_ids]
            yield op, ceil(sum(sizes))
        for value in op.operands:
            if last[value.id] is op and value.id not in undonated:
                live.pop(value.id, None)
        for value in op.results:
            if value.id in last:
                hold(value)
