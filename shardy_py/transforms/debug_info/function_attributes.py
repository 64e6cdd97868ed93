"""The dictionaries of attributes of a function's arguments and results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardy_py.ir.graph.program import Op


def function_dictionaries(function: Op, name: str) -> tuple[Mapping[str, Any], ...]:
    """Return the dictionaries of ``arg_attrs`` or ``res_attrs``, empty ones where there are none."""
    count = len(function.function_results) if name == "res_attrs" else _num_arguments(function)
    return function.attributes.get(name) or ({},) * count


def update_function(function: Op, name: str, updates: Mapping[int, Mapping[str, Any]]) -> None:
    """Set attributes of arguments (``arg_attrs``) or results (``res_attrs``) of a function, by position."""
    if updates:
        old = function_dictionaries(function, name)
        function.attributes[name] = tuple([{**item, **updates.get(index, {})} for index, item in enumerate(old)])


def _num_arguments(function: Op) -> int:
    for region in function.regions:
        for block in region.blocks:
            return len(block.arguments)
    return 0
