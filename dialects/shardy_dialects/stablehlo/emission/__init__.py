"""Scalar bodies of StableHLO's ops: what they compute for one element, for kernels."""

from __future__ import annotations

from typing import Any

from shardy_dialects.stablehlo.emission import arithmetic, conversion, functions, movement, reductions
from shardy_py.plugins import Emission, OpDefinition

BODIES: dict[str, Emission] = {
    **arithmetic.BODIES,
    **conversion.BODIES,
    **functions.BODIES,
    **movement.BODIES,
    **reductions.BODIES,
}


def describe(definition: OpDefinition) -> dict[str, Any]:
    """Return the scalar body of an op."""
    body = BODIES.get(definition.name.partition(".")[2])
    return {} if body is None else {"emission": body}
