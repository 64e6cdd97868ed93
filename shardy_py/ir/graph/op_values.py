"""The values of ops: arguments of their regions, results, and both of all ops inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardy_py.ir.graph.program import Block, Op, Program, Value


def region_arguments(op: Op) -> Iterator[Value]:
    """Yield the arguments of all blocks of an op."""
    return (argument for region in op.regions for block in region.blocks for argument in block.arguments)


def own_values(op: Op) -> Iterator[Value]:
    """Yield the results of an op, those of a function, and the arguments of its blocks."""
    yield from op.results
    yield from op.function_results
    yield from region_arguments(op)


def all_values(root: Op | Program) -> Iterator[Value]:
    """Yield the results and the arguments of blocks of all ops, in program order, without the results of functions."""
    for op in root.walk():
        yield from op.results
        yield from region_arguments(op)


def entry_block(function: Op) -> Block | None:
    """Return the first block of a function, or None for a declaration."""
    for region in function.regions:
        for block in region.blocks:
            return block
    return None


def entry_arguments(function: Op) -> Sequence[Value]:
    """Return the arguments of a function; () for a declaration."""
    block = entry_block(function)
    return () if block is None else block.arguments
