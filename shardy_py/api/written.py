"""The native module that a program becomes, verified where that may find something."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.op_names import (
    CONSTANT,
    CONSTRAINT,
    DATA_FLOW_EDGE,
    FUNC_DATA_FLOW_EDGE,
    MESH,
    NAMED_COMPUTATION,
    REGION_RETURN,
    RESHARD,
    SHARDING_GROUP,
)
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.passes import Pass
from shardy_py.transforms.plugin_passes import GuardedPass

_WITHOUT_VERIFIER = frozenset(
    (
        *(MESH, CONSTANT, RESHARD, REGION_RETURN, SHARDING_GROUP, CONSTRAINT),
        *(DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE, NAMED_COMPUTATION),
    )
)
"""Ops of Shardy that ask for no more than what `verify_shardings` checks, and those that are taken out again."""


def write(program: Program) -> Any:
    """Bring the native module of a program up to date and return it."""
    return frontend_of(program).write_back(program)


def write_verified(program: Program, passes: Iterable[Pass], name: str) -> Any:
    """Bring the native module of a program up to date, let it verify itself, and return it.

    Shardings are no concern of the verifiers of most ops, so that only programs with collectives and other such ops of
    Shardy are verified, those that keep their rules, and those that passes of plugins changed.

    Args:
        program: The program, with its shardings in its attributes.
        passes: The passes that ran; those of plugins may have done anything.
        name: What locations call the source of the module.

    Raises:
        VerificationError: the module breaks an invariant of one of its ops.
    """
    frontend, module = frontend_of(program), write(program)
    if any(isinstance(item, GuardedPass) for item in passes) or program.rules or _has_verifiers(program):
        frontend.verify_native(module, name=name or "-")
    return module


def _has_verifiers(program: Program) -> bool:
    return any(op.startswith("sdy.") and op not in _WITHOUT_VERIFIER for op in program.op_names)
