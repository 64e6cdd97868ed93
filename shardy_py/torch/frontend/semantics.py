"""Definitions of ops from the tags of their operators, and the ops for communication of programs of PyTorch."""

from __future__ import annotations

from attrs import evolve

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import all_ops
from shardy_py.plugins import Elementwise, OpDefinition, Pure, Registry
from shardy_py.sharding.rules import broadcast
from shardy_py.torch.frontend.calls import POINTWISE

_SPACE = "aten"


def extend(program: Program, registry: Registry) -> Registry:
    """Return a registry that also defines the pointwise ops of a program; definitions of plugins come first.

    Local programs communicate by the ops of PyTorch, even where all ops are users' own.
    """
    if _SPACE in registry.local_ops:
        registry = evolve(registry, local_ops={_SPACE: registry.local_ops[_SPACE]})
    known = {item.key: item for item in registry.definitions}
    pointwise = {op.name for op in all_ops(program) if op.attributes.get(POINTWISE)}
    added = {
        name: OpDefinition(name, traits=frozenset((Elementwise, Pure)), rule=broadcast)
        for name in sorted(pointwise - known.keys())
    }
    if not added:
        return registry
    definitions = known | added
    owners = {**registry.owners, **dict.fromkeys(added, "the pointwise operators of PyTorch")}
    return evolve(registry, definitions=tuple(definitions[name] for name in sorted(definitions)), owners=owners)
