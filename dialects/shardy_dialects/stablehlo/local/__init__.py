"""The local forms of StableHLO's ops: what one device runs, on its shards."""

from __future__ import annotations

from typing import Any

from shardy_dialects.stablehlo.local import (
    by_types,
    constants,
    convolution,
    dynamic_shapes,
    dynamic_slicing,
    gathering,
    padding,
    random,
    reduce_window,
    reduction,
    scattering,
    select_and_scatter,
    shaping,
    slicing,
)
from shardy_dialects.stablehlo.local.ops import StablehloLocalOps
from shardy_py.plugins import OpDefinition

FORMS = {
    **by_types.FORMS,
    **constants.FORMS,
    **convolution.FORMS,
    **dynamic_shapes.FORMS,
    **dynamic_slicing.FORMS,
    **gathering.FORMS,
    **scattering.FORMS,
    **padding.FORMS,
    **random.FORMS,
    **reduce_window.FORMS,
    **reduction.FORMS,
    **select_and_scatter.FORMS,
    **shaping.FORMS,
    **slicing.FORMS,
}

__all__ = ["FORMS", "StablehloLocalOps", "describe"]


def describe(definition: OpDefinition) -> dict[str, Any]:
    """Return the local form of an op."""
    form = FORMS.get(definition.name)
    return {} if form is None else {"local": form}
