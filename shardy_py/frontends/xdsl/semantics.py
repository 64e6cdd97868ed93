"""Semantics from the op classes of an xDSL module: traits, and the protocols if they implement them.

A class implements a protocol with methods of the same names and parameters; ``self`` is the xDSL op, the parameter
``op`` the op of the graph. A copy that a pass made uses the methods of the op it was copied from.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from attrs import evolve
from xdsl import traits as xt
from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Operation

from shardy_py.frontends.xdsl.importer import XdslAttributes
from shardy_py.ir.graph.program import Op, Program
from shardy_py.plugins import (
    ConstantLike,
    IsolatedFromAbove,
    IsTerminator,
    OpDefinition,
    Pure,
    RecursiveMemoryEffects,
    Registry,
    ReturnLike,
    ShardableDataFlowOpInterface,
    Trait,
)
from shardy_py.plugins.rule_view import viewed_op

_TRAITS: tuple[tuple[type[xt.OpTrait], Trait], ...] = (
    (xt.Pure, Pure),
    (xt.ConstantLike, ConstantLike),
    (xt.IsTerminator, IsTerminator),
    (xt.ReturnLike, ReturnLike),
    (xt.IsolatedFromAbove, IsolatedFromAbove),
    (xt.RecursiveMemoryEffect, RecursiveMemoryEffects),
)
_DATA_FLOW = tuple(name for name in vars(ShardableDataFlowOpInterface) if not name.startswith("_"))


def extend(program: Program, registry: Registry) -> Registry:
    """Return a registry extended by the op classes of a module; see `extend_registry`.

    The definition of a plugin comes first; a class fills in what it leaves open.
    """
    definitions = {item.key: item for item in registry.definitions}
    owners = dict(registry.owners)
    for name, class_ in sorted(program.origin.classes.items()):
        known = definitions.get(name)
        definition = _fill(known, class_) if known is not None else _define(name, class_)
        if definition is not None and definition is not known:
            definitions[name] = definition
            owners.setdefault(name, f"the xDSL class {class_.__name__}")
    if tuple(definitions.values()) == registry.definitions:
        return registry
    return evolve(registry, definitions=tuple(definitions[name] for name in sorted(definitions)), owners=owners)


def _define(name: str, class_: type[Operation]) -> OpDefinition | None:
    traits = (
        () if issubclass(class_, UnregisteredOp) else [trait for native, trait in _TRAITS if class_.has_trait(native)]
    )
    if not traits and not _has_rule(class_) and not _has_data_flow(class_):
        return None
    return _fill(OpDefinition(name, traits=frozenset(traits)), class_)


def _fill(known: OpDefinition, class_: type[Operation]) -> OpDefinition:
    if known.rule is None and known.data_flow is None and _has_rule(class_):
        known = evolve(known, rule=_rule)
    if known.data_flow is None and known.rule is None and _has_data_flow(class_):
        known = evolve(known, data_flow=_DataFlow(class_))  # type: ignore[abstract]
    return known


def _has_rule(class_: type[Operation]) -> bool:
    return callable(getattr(class_, "get_sharding_rule", None))


def _has_data_flow(class_: type[Operation]) -> bool:
    return callable(getattr(class_, "get_edge_sources", None))


def _native(op: Op) -> Any:
    """Return the native op of an op, of a copy that of the op it was copied from."""
    op = viewed_op(op)
    if op.handle is None and isinstance(op.attributes, XdslAttributes):
        return op.attributes.model
    return op.handle


def _rule(op: Op) -> Any:
    return _native(op).get_sharding_rule(op)


class _DataFlow(ShardableDataFlowOpInterface):
    """Data flow of an op through the methods of its class, with the defaults for those that it lacks."""

    def __init__(self, class_: type[Operation]) -> None:
        for name in _DATA_FLOW:
            if callable(getattr(class_, name, None)):
                setattr(self, name, partial(_ask, name))


def _ask(name: str, op: Op, *arguments: Any) -> Any:
    return getattr(_native(op), name)(op, *arguments)
