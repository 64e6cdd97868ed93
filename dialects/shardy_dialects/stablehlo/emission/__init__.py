"""Scalar bodies of StableHLO's ops: what they compute for one element, for kernels."""

from __future__ import annotations

from attrs import evolve

from shardy_dialects.stablehlo.emission import arithmetic, conversion, functions, movement, reductions
from shardy_py.plugins import Dialect, Emission

BODIES: dict[str, Emission] = {
    **arithmetic.BODIES,
    **conversion.BODIES,
    **functions.BODIES,
    **movement.BODIES,
    **reductions.BODIES,
}


def register(dialect: Dialect) -> None:
    """Give scalar bodies to ops that are defined already."""
    for definition in dialect.definitions:
        body = BODIES.get(definition.name.partition(".")[2])
        if body is not None:
            dialect.replace(evolve(definition, emission=body))
