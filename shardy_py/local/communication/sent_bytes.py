"""Bytes that a device sends: of a local program as it is written, and at least those of one that is to become local."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from shardy_py.ir.graph.op_names import ALL_GATHER
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.local import LocalOps
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.communication.choices import meshes_by_name
from shardy_py.local.communication.moves import collective_bytes, sends_of, shard_bytes
from shardy_py.local.communication.routes import STEPS, Routes
from shardy_py.local.communication.run_counts import RunCounts
from shardy_py.local.early_gathers import cheaper_producer
from shardy_py.local.look_ups import may_wait
from shardy_py.sharding.mesh import Mesh
from shardy_py.values import NoFields


class CountSentBytesPass(NoFields):
    """Record how many bytes a device sends at least in a program with explicit collectives.

    Gathers that the conversion may make cheaper do not count, nor does what local forms send by themselves.
    """

    name: ClassVar[str] = "count-sent-bytes"

    def run(self, program: Program, context: PassContext) -> None:
        """Record the bytes in the context, if it collects them; the program stays as it is."""
        if context.sent_bytes is None:
            return
        semantics, meshes = context.semantics, meshes_by_name(program)
        routes, counts = Routes(program, semantics), RunCounts(semantics)
        runs = counts.of_functions(program)
        total = 0.0
        for name, op in _ops_by_function(program):
            if op.name not in STEPS:
                continue
            sharding = program.sharding(op.results[0])
            mesh = None if sharding is None else meshes.get(str(sharding.mesh))
            is_cheaper = op.name == ALL_GATHER and (may_wait(op) or cheaper_producer(op, semantics) is not None)
            if mesh is not None and not is_cheaper:
                sent = collective_bytes(op, routes.sharding(op.operands[0]), mesh)
                total += sent * counts.of_block(op.parent) * runs[name]
        context.sent_bytes.append(total)


def local_sent_bytes(program: Program, ops: LocalOps, semantics: OpSemantics, mesh: Mesh) -> float:
    """Return the bytes that a device sends in a local program, on average, by ring algorithms; loops count.

    Args:
        program: The local program.
        ops: The ops for communication of its dialect.
        semantics: What is known about ops.
        mesh: The mesh of all devices.
    """
    counts, total = RunCounts(semantics), 0.0
    runs = counts.of_functions(program)
    for name, op in _ops_by_function(program):
        collective = ops.read_collective(op)
        if collective is None or not op.operands:
            continue
        size = sum(shard_bytes(value.type, None, mesh) for value in op.operands)
        total += size * sends_of(collective, max(1, mesh.total_size)) * counts.of_block(op.parent) * runs[name]
    return total


def _ops_by_function(program: Program) -> Iterator[tuple[str, Op]]:
    """Yield all ops in functions with the name of the function."""
    for name, function in program.functions.items():
        for op in function.walk():
            yield name, op
