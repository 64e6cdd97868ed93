"""A walk over all shardings of a program, wherever they are stored.

Mirrors sharding_walker.cc::transformShardings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from shardy_py.ir.graph.op_names import FUNCTION, MANUAL_COMPUTATION
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import SHARDING, distinct, load_data_flow, store_data_flow
from shardy_py.ir.graph.walk import all_ops, entry_arguments
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue

IN_SHARDINGS = "in_shardings"
OUT_SHARDINGS = "out_shardings"

Transform = Callable[[TensorSharding], TensorSharding]


def transform_shardings(
    program: Program, semantics: OpSemantics, transform: Transform, *, concerns: Callable[[TensorSharding], bool]
) -> None:
    """Replace each sharding by ``transform`` of it.

    The order is that of the program: an op before those in its regions; of each op arguments, then results.

    Args:
        program: The program.
        semantics: Answers questions about its ops.
        transform: Returns the new sharding for an old one.
        concerns: Tells whether that is another one at all; where no sharding of a value changes, values are skipped.
    """
    ops = all_ops(program)
    if not any(concerns(sharding) for sharding in distinct(program.shardings.values())):
        # Attributes may hold others besides those in the table.
        ops = [op for op in ops if not op.results or op.name == MANUAL_COMPUTATION]
    for op in ops:
        data_flow = semantics.get_data_flow(op)
        if op.name == FUNCTION:
            _transform_values(program, entry_arguments(op), transform)
            _transform_values(program, op.function_results, transform)
        elif op.name == MANUAL_COMPUTATION:
            with edit_manual_computation(program, op, semantics):
                _transform_attribute(op, IN_SHARDINGS, transform)
                _transform_attribute(op, OUT_SHARDINGS, transform)
        elif data_flow is not None:
            _transform_values(program, data_flow.get_block_argument_edge_owners(op), transform)
            _transform_values(program, data_flow.get_op_result_edge_owners(op), transform)
        elif op.results:
            _transform_values(program, op.results, transform)
        else:
            _transform_attribute(op, SHARDING, transform)


@contextmanager
def edit_manual_computation(program: Program, op: Op, semantics: OpSemantics) -> Iterator[None]:
    """Transform the shardings in the attributes of a manual computation.

    Only the attributes have the manual axes, the table has the others.
    """
    data_flow = semantics.get_data_flow(op)
    if data_flow is None:
        yield
        return
    store_data_flow(program.shardings, op, data_flow)
    yield
    load_data_flow(program.shardings, op, data_flow)


def load_computation(program: Program, op: Op, semantics: OpSemantics) -> None:
    """Enter the shardings that a new manual computation has as attributes into the table."""
    data_flow = semantics.get_data_flow(op)
    if data_flow is not None:
        load_data_flow(program.shardings, op, data_flow)


def _transform_values(program: Program, values: Iterable[Value], transform: Transform) -> None:
    table = program.shardings
    for value in values:
        sharding = table.get(value.id)
        if sharding is not None:
            table[value.id] = transform(sharding)


def _transform_attribute(op: Op, name: str, transform: Transform) -> None:
    """Replace the shardings in an attribute; an op without results may hold one that says on which device it runs."""
    held: Any = op.attributes.get(name)
    if isinstance(held, TensorShardingPerValue):
        op.attributes[name] = TensorShardingPerValue(tuple([transform(sharding) for sharding in held.shardings]))
    elif isinstance(held, TensorSharding):
        op.attributes[name] = transform(held)
