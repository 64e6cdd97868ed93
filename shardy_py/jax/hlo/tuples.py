"""Ops of StableHLO with tuples, as HLO has them, to ops with several results."""

from __future__ import annotations

from copy import copy

from jaxlib.mlir import ir

from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.types import Type
from shardy_py.ir.graph.walk import ops_named
from shardy_py.jax.gspmd.importer.annotated import SHARDING

_CALL, _PART, _TUPLE = "stablehlo.custom_call", "stablehlo.get_tuple_element", "stablehlo.tuple"


def flatten_tuples(program: Program) -> bool:
    """Make custom calls give several results instead of a tuple, and take made tuples apart, as XLA does.

    A tuple that is used as a whole stays.

    Args:
        program: The program, just imported; changed in place.

    Returns:
        Whether anything changed.
    """
    calls = [op for op in ops_named(program, _CALL) if _is_taken_apart(op)]
    tuples = [op for op in ops_named(program, _TUPLE) if _is_taken_apart(op)]
    for op in calls:
        _flatten(op)
    for op in tuples:
        for user, _ in list(op.results[0].uses):
            user.results[0].replace_all_uses_with(op.operands[int(user.attributes["index"])])
            user.erase()
        op.erase()
    return bool(calls or tuples)


def _is_taken_apart(op: Op) -> bool:
    """Return whether the only result is a tuple of which nothing but parts is used."""
    if len(op.results) != 1 or not isinstance(op.handle.native.results[0].type, ir.TupleType):
        return False
    return all(user.name == _PART for user, _ in op.results[0].uses)


def _flatten(op: Op) -> None:
    block = op.parent
    assert block is not None
    new_op = Op(op.program, op.name, op.operands, _types(op), copy(op.attributes))
    shardings = {int(user.attributes["index"]): user.attributes.get(SHARDING) for user, _ in op.results[0].uses}
    if SHARDING not in op.attributes and any(shardings.values()):
        new_op.attributes[SHARDING] = (
            f"{{{', '.join(shardings.get(item.index) or '{unknown}' for item in new_op.results)}}}"
        )
    block.insert_before(op, new_op)
    for user, _ in list(op.results[0].uses):
        user.results[0].replace_all_uses_with(new_op.results[int(user.attributes["index"])])
        user.erase()
    op.erase()


def _types(op: Op) -> list[Type]:
    native = ir.TupleType(op.handle.native.results[0].type)
    types = op.program.origin.codec.types
    return [types[native.get_type(number)] for number in range(native.num_types)]
