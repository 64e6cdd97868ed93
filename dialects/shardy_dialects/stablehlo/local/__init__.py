"""The local forms of StableHLO's ops: what one device runs, on its shards."""

from __future__ import annotations

from attrs import evolve

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
from shardy_py.plugins import Dialect

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

__all__ = ["FORMS", "StablehloLocalOps", "register"]


def register(dialect: Dialect) -> None:
    """Add the local forms to ops that are defined already."""
    for definition in dialect.definitions:
        form = FORMS.get(definition.name)
        if form is not None:
            dialect.replace(evolve(definition, local=form))
