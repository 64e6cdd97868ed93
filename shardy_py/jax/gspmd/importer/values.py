"""Attributes ``mhlo.sharding`` of ops, arguments and results: the shardings of their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import SHARDING as SHARDY_SHARDING
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.ir.graph.walk import entry_arguments, entry_block
from shardy_py.jax.gspmd.importer.annotated import SHARDING, annotated_ops, dictionaries
from shardy_py.jax.gspmd.importer.annotations import Annotations
from shardy_py.jax.gspmd.importer.custom_calls import add_group_member
from shardy_py.jax.gspmd.importer.meshes import Meshes
from shardy_py.sharding.hlo import HloSharding
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue

_SILENT = frozenset(("manual", "unknown"))
"""The kinds without free axes."""


def read_values(program: Program, annotations: Annotations, meshes: Meshes, warnings: list[Diagnostic]) -> None:
    """Replace the attributes by ones of Shardy, where a value has none of those yet."""
    for op in annotated_ops(program):
        try:
            if op.name == FUNCTION:
                _read_interface(op, annotations, meshes)
            if SHARDING in op.attributes:
                _read_results(op, annotations, meshes, warnings)
        except VerificationError as error:
            raise VerificationError(
                *(Diagnostic(item.code, item.message, op.location, op.name, item.hint) for item in error.diagnostics)
            ) from None


def _read_interface(function: Op, annotations: Annotations, meshes: Meshes) -> None:
    for name, values in (("arg_attrs", entry_arguments(function)), ("res_attrs", function.function_results)):
        items = dictionaries(function, name)
        if any(SHARDING in item for item in items):
            types = _types(function, name, values)
            function.attributes[name] = tuple(
                _converted(item, function, type_, annotations, meshes) for item, type_ in zip(items, types, strict=True)
            )
            _add_to_groups(items, values if name == "arg_attrs" else _returned(function), annotations, function)


def _returned(function: Op) -> Sequence[Value]:
    block = entry_block(function)
    return () if block is None or block.last is None else block.last.operands


def _add_to_groups(
    items: Sequence[dict[str, Any]], values: Sequence[Value], annotations: Annotations, function: Op
) -> None:
    """Make the arguments of a function, or the values it returns, members of the groups that they are in."""
    # Each is put in front of those before it where both are arguments.
    for item, value in reversed(list(zip(items, values, strict=False))):
        if SHARDING in item:
            group = annotations.read(item[SHARDING], function).group
            if group is not None:
                add_group_member(value, group.number)


def _types(function: Op, name: str, values: Sequence[Value]) -> Sequence[Type | None]:
    """Return the types of arguments or results; None for the arguments of a function without a body."""
    items = dictionaries(function, name)
    return [value.type for value in values] if values else [None] * len(items)


def _converted(
    item: dict[str, Any], function: Op, type_: Type | None, annotations: Annotations, meshes: Meshes
) -> dict[str, Any]:
    """Return the attributes of one argument or result with a sharding of Shardy in the place of GSPMD's."""
    if SHARDING not in item:
        return item
    sharding = annotations.read(item[SHARDING], function)
    rest = {name: value for name, value in item.items() if name != SHARDING}
    if SHARDY_SHARDING in rest or sharding.kind in _SILENT or not isinstance(type_, TensorType):
        return rest
    return {**rest, SHARDY_SHARDING: meshes.read(sharding, type_)}


def _read_results(op: Op, annotations: Annotations, meshes: Meshes, warnings: list[Diagnostic]) -> None:
    sharding = annotations.of(op)
    text = op.attributes.pop(SHARDING)
    if sharding is None:
        return
    elements = _elements(sharding, len(op.results))
    if elements is None:
        message = f"the sharding {text} is not for {len(op.results)} results and is left out"
        warnings.append(Diagnostic("annotation-left-out", message, op.location, op.name))
        return
    if SHARDY_SHARDING not in op.attributes:
        _set_shardings(op, elements, meshes)
    for value, element in zip(op.results, elements, strict=True):
        if element.group is not None:
            add_group_member(value, element.group.number)


def _elements(sharding: HloSharding, count: int) -> Sequence[HloSharding] | None:
    """Return the shardings of several results, or None if there are not as many."""
    if sharding.kind != "tuple":
        return [sharding] * count
    return sharding.elements if len(sharding.elements) == count else None


def _set_shardings(op: Op, elements: Sequence[HloSharding], meshes: Meshes) -> None:
    shardings: list[TensorSharding | None] = [
        meshes.read(element, value.type) if element.kind not in _SILENT and isinstance(value.type, TensorType) else None
        for value, element in zip(op.results, elements, strict=True)
    ]
    mesh = next((sharding.mesh for sharding in shardings if sharding is not None), None)
    if mesh is None:
        return
    ranks = [value.type.rank if isinstance(value.type, TensorType) else 0 for value in op.results]
    op.attributes[SHARDY_SHARDING] = TensorShardingPerValue(
        tuple(
            TensorSharding.fully_open(mesh, rank) if sharding is None else sharding
            for sharding, rank in zip(shardings, ranks, strict=True)
        )
    )
