"""Ops with shardings of GSPMD, and programs with shardings of Shardy as text; few programs have either."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from shardy_py.ir.graph.attributes import shared_key
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import all_ops, ops_named

SHARDING = "mhlo.sharding"
"""The attribute of an op, an argument or a result of a function."""
INTERFACE = ("arg_attrs", "res_attrs")
"""The attributes of a function with those of its arguments and results."""
FRONTEND = "mhlo.frontend_attributes"
MESHES = "xla.sdy.meshes"
"""The frontend attribute of a module whose shardings of Shardy are kept as text."""
PREFIX = "xla.sdy."
"""The beginning of the names of such texts."""


def annotated_ops(program: Program, attribute_names: Collection[str] | None = None) -> list[Op]:
    """Return the ops with a sharding of GSPMD, and the functions whose arguments or results have one.

    Args:
        program: The program.
        attribute_names: The names of all attributes of the ops, where these are known.
    """
    if attribute_names is not None and SHARDING not in attribute_names:
        return [op for op in ops_named(program, FUNCTION) if _is_annotated(op)]
    annotated: list[Op] = []
    # Ops share their attributes, and few have an annotation.
    without: set[object] = set()
    for op in all_ops(program):
        shared = shared_key(op.attributes)
        if shared in without:
            continue
        if SHARDING in op.attributes or (op.name == FUNCTION and _is_annotated(op)):
            annotated.append(op)
        elif shared is not None:
            without.add(shared)
    return annotated


def _is_annotated(function: Op) -> bool:
    return any(SHARDING in item for name in INTERFACE for item in dictionaries(function, name))


def dictionaries(function: Op, name: str) -> Sequence[dict[str, Any]]:
    """Return the attributes of the arguments or of the results of a function."""
    items: Sequence[dict[str, Any]] = function.attributes.get(name) or ()
    return items


def is_round_trip(program: Program) -> bool:
    """Return whether a program keeps shardings of Shardy as text."""
    return MESHES in frontend_attributes(program.attributes)


def mark_round_trip(program: Program, attribute_names: Collection[str] | None = None) -> bool:
    """Make a program say that it keeps texts of Shardy where it does so without any mesh; return whether it changed.

    Args:
        program: The program.
        attribute_names: The names of all attributes of the ops, where these are known.
    """
    if is_round_trip(program) or not _keeps_texts(program, attribute_names):
        return False
    program.attributes[FRONTEND] = {**frontend_attributes(program.attributes), MESHES: "{}"}
    return True


def _keeps_texts(program: Program, attribute_names: Collection[str] | None) -> bool:
    """Return whether an op, or an argument or result of a function, has a text of Shardy."""
    functions = ops_named(program, FUNCTION)
    if any(_has_text(item) for function in functions for name in INTERFACE for item in dictionaries(function, name)):
        return True
    if attribute_names is not None and FRONTEND not in attribute_names:
        return False
    return any(FRONTEND in op.attributes and _has_text(op.attributes) for op in all_ops(program))


def _has_text(attributes: Mapping[str, Any]) -> bool:
    return any(name.startswith(PREFIX) for name in frontend_attributes(attributes))


def frontend_attributes(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the dictionary that compilers hand on; an empty one where there is none."""
    dictionary = attributes.get(FRONTEND)
    return dictionary if isinstance(dictionary, Mapping) else {}
