"""Grammar of whole attributes, and their names."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from shardy_py.sharding.axes import SdyAttribute
from shardy_py.sharding.grammar.rules import op_sharding_rule
from shardy_py.sharding.grammar.shardings import manual_axes, mesh, tensor_sharding, tensor_sharding_per_value
from shardy_py.sharding.lexer import Cursor

Production = Callable[[Cursor], SdyAttribute]


def _on_demand(name: str) -> Production:
    """Return a production of the module that is imported when a text needs it."""

    def parse(cursor: Cursor) -> SdyAttribute:
        production: Production = getattr(import_module("shardy_py.sharding.grammar.op_attributes"), name)
        return production(cursor)

    return parse


_PRODUCTIONS: dict[str, Production] = {
    "sharding": tensor_sharding,
    "sharding_per_value": tensor_sharding_per_value,
    "mesh": mesh,
    "op_sharding_rule": op_sharding_rule,
    "manual_axes": manual_axes,
    "axis_ref_list": _on_demand("axis_ref_list"),
    "list_of_axis_ref_lists": _on_demand("list_of_axis_ref_lists"),
    "all_to_all_param_list": _on_demand("all_to_all_param_list"),
    "propagation_edges": _on_demand("propagation_edges"),
}
_ARRAYS = frozenset(("manual_axes", "axis_ref_list", "list_of_axis_ref_lists", "all_to_all_param_list"))
"""The attributes that MLIR writes inside the brackets, see `SdyAttribute.is_array`."""


def attribute(cursor: Cursor) -> SdyAttribute:
    """Parse a whole attribute, ``#sdy.name...`` or ``#sdy<name...>``."""
    prefix, _, mnemonic = cursor.token.partition(".")
    if prefix != "#sdy":
        cursor.fail("an attribute like #sdy.sharding<...>")
    if mnemonic in _ARRAYS:
        cursor.fail(f"the form #sdy<{mnemonic}...>")
    if mnemonic:
        return _production(cursor, mnemonic)(cursor)
    cursor.advance()
    cursor.expect("<")
    value = _production(cursor, cursor.token)(cursor)
    cursor.expect(">")
    return value


def _production(cursor: Cursor, mnemonic: str) -> Production:
    if mnemonic not in _PRODUCTIONS:
        cursor.fail("one of the attributes " + ", ".join(_PRODUCTIONS), code="unknown-attribute")
    cursor.advance()
    return _PRODUCTIONS[mnemonic]
