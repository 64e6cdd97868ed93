"""StableHLO, with its clients CHLO and MHLO: one module or package for each family of ops.

A family has all that is known of its ops side by side: traits, sharding rules, indexing maps, data flow, local forms,
scalar bodies and costs.
"""

from __future__ import annotations

from shardy_dialects.stablehlo import (
    batch_norm,
    collectives,
    constants,
    control_flow,
    convolution,
    custom_call,
    decompositions,
    dot,
    elementwise,
    fft,
    gather_scatter,
    reduce,
    rng,
    shape,
    slicing,
    sort,
    tokens,
    window,
)
from shardy_dialects.stablehlo.definitions import Definitions
from shardy_dialects.stablehlo.gather_scatter.explicit_batching import ExplicitGatherScatterBatchingPass
from shardy_dialects.stablehlo.local.ops import StablehloLocalOps
from shardy_dialects.stablehlo.simplify import SimplifyPass
from shardy_py.plugins import Dialect, Pass, hookimpl

FAMILIES = (
    batch_norm,
    collectives,
    constants,
    control_flow,
    convolution,
    custom_call,
    decompositions,
    dot,
    elementwise,
    fft,
    gather_scatter,
    reduce,
    rng,
    shape,
    slicing,
    sort,
    tokens,
    window,
)


@hookimpl
def shardy_register_dialects() -> list[Dialect]:
    """Return the dialects StableHLO, CHLO and MHLO."""
    definitions = Definitions(StablehloLocalOps())
    for family in FAMILIES:
        family.register(definitions)
    return [definitions.stablehlo, definitions.chlo, definitions.mhlo]


@hookimpl
def shardy_register_passes() -> list[type[Pass]]:
    """Return the passes."""
    return [ExplicitGatherScatterBatchingPass, SimplifyPass]
