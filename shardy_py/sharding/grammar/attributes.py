"""Grammar of whole attributes, and their names."""

from __future__ import annotations

from collections.abc import Callable

from shardy_py.sharding.collectives import AllToAllParamList, AxisRefList, ListOfAxisRefLists
from shardy_py.sharding.grammar.collectives import all_to_all_param_list, axis_ref_list, list_of_axis_ref_lists
from shardy_py.sharding.grammar.edges import propagation_edges
from shardy_py.sharding.grammar.rules import op_sharding_rule
from shardy_py.sharding.grammar.shardings import manual_axes, mesh, tensor_sharding, tensor_sharding_per_value
from shardy_py.sharding.lexer import Cursor
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.propagation_edges import PropagationEdges
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import ManualAxes, TensorSharding, TensorShardingPerValue

ShardingValue = (
    Mesh
    | TensorSharding
    | TensorShardingPerValue
    | OpShardingRule
    | ManualAxes
    | AxisRefList
    | ListOfAxisRefLists
    | AllToAllParamList
    | PropagationEdges
)
"""Every value that can be an attribute of an op."""

_PRODUCTIONS: dict[str, Callable[[Cursor], ShardingValue]] = {
    "sharding": tensor_sharding,
    "sharding_per_value": tensor_sharding_per_value,
    "mesh": mesh,
    "op_sharding_rule": op_sharding_rule,
    "manual_axes": manual_axes,
    "axis_ref_list": axis_ref_list,
    "list_of_axis_ref_lists": list_of_axis_ref_lists,
    "all_to_all_param_list": all_to_all_param_list,
    "propagation_edges": propagation_edges,
}


MNEMONICS: dict[type, str] = {
    TensorSharding: "sharding",
    TensorShardingPerValue: "sharding_per_value",
    Mesh: "mesh",
    OpShardingRule: "op_sharding_rule",
    PropagationEdges: "propagation_edges",
}
# MLIR writes the attributes that are mere arrays inside the brackets.
ARRAY_MNEMONICS: dict[type, str] = {
    ManualAxes: "manual_axes",
    AxisRefList: "axis_ref_list",
    ListOfAxisRefLists: "list_of_axis_ref_lists",
    AllToAllParamList: "all_to_all_param_list",
}


def attribute(cursor: Cursor) -> ShardingValue:
    """Parse a whole attribute, ``#sdy.name...`` or ``#sdy<name...>``."""
    prefix, _, mnemonic = cursor.token.partition(".")
    if prefix != "#sdy":
        cursor.fail("an attribute like #sdy.sharding<...>")
    if mnemonic in ARRAY_MNEMONICS.values():
        cursor.fail(f"the form #sdy<{mnemonic}...>")
    if mnemonic:
        return _production(cursor, mnemonic)(cursor)
    cursor.advance()
    cursor.expect("<")
    value = _production(cursor, cursor.token)(cursor)
    cursor.expect(">")
    return value


def _production(cursor: Cursor, mnemonic: str) -> Callable[[Cursor], ShardingValue]:
    if mnemonic not in _PRODUCTIONS:
        cursor.fail("one of the attributes " + ", ".join(_PRODUCTIONS), code="unknown-attribute")
    cursor.advance()
    return _PRODUCTIONS[mnemonic]
