"""StableHLO and CHLO: the sharding rules, traits and data flow of their ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shardy_dialects.stablehlo import (
    broadcast,
    chlo,
    collectives,
    convolution,
    costs,
    custom_calls,
    data_flow,
    dot,
    elementwise,
    emission,
    gather_scatter,
    indexing,
    linalg,
    local,
    mesh_references,
    mhlo,
    normalization,
    rearranging,
    reduction,
    rng,
    slicing,
    sorting,
    without_rule,
)
from shardy_dialects.stablehlo.explicit_batching import ExplicitGatherScatterBatchingPass
from shardy_py.plugins import Dialect, OpDefinition, Pass, hookimpl

FAMILIES = (
    broadcast,
    collectives,
    convolution,
    custom_calls,
    data_flow,
    dot,
    elementwise,
    gather_scatter,
    linalg,
    normalization,
    rearranging,
    reduction,
    rng,
    slicing,
    sorting,
    without_rule,
)
"""The modules that define ops, with rules and traits."""


def stablehlo_dialect() -> Dialect:
    """Return the definitions of the StableHLO ops."""
    dialect = Dialect("stablehlo", local_ops=local.StablehloLocalOps())
    for family in FAMILIES:
        family.register(dialect)
    _complete(dialect, mesh_references.describe, costs.describe, indexing.describe, emission.describe, local.describe)
    for name in ("token", "future"):
        dialect.type(f"!stablehlo.{name}")
    return dialect


def chlo_dialect() -> Dialect:
    """Return the definitions of the CHLO ops."""
    dialect = Dialect("chlo")
    chlo.register(dialect)
    _complete(dialect, costs.describe, indexing.describe, emission.describe, local.describe)
    return dialect


def mhlo_dialect() -> Dialect:
    """Return the definitions of the ops that remain of MHLO in modules made from HLO."""
    dialect = Dialect("mhlo")
    mhlo.register(dialect)
    _complete(dialect, costs.describe, indexing.describe, emission.describe, local.describe)
    return dialect


def _complete(dialect: Dialect, *describe: Callable[[OpDefinition], dict[str, Any]]) -> None:
    """Add everything besides rules to the ops of a dialect, to each at once."""
    for definition in dialect.definitions:
        parts = {name: part for function in describe for name, part in function(definition).items()}
        if parts:
            dialect.replace(definition.with_parts(parts))


@hookimpl
def shardy_register_dialects() -> list[Dialect]:
    """Give the dialects to the registry."""
    return [stablehlo_dialect(), chlo_dialect(), mhlo_dialect()]


@hookimpl
def shardy_register_passes() -> list[type[Pass]]:
    """Give the passes to the registry."""
    return [ExplicitGatherScatterBatchingPass]
