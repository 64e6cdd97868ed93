"""The passes that make all communication of a propagated program explicit, as collectives."""

from __future__ import annotations

from shardy_py.ir.interfaces.passes import Pass
from shardy_py.transforms.finish.canonicalize_collectives import CanonicalizeCollectivesPass
from shardy_py.transforms.finish.canonicalize_reshards import CanonicalizeReshardsPass
from shardy_py.transforms.finish.insert_explicit_reshards import InsertExplicitReshardsPass
from shardy_py.transforms.finish.reshard_to_collectives import ReshardBlockArgumentsPass, ReshardToCollectivesPass


def explicit_passes() -> tuple[Pass, ...]:
    """Return the passes in order; they are those of the pipeline with ``explicit_collectives``.

    A program that went through the pipeline without this option has its final shardings already, so these passes give
    the same program as the pipeline with the option does.
    """
    return (
        InsertExplicitReshardsPass(enable_full_version=True, reshard_ops_without_rule=True),
        CanonicalizeReshardsPass(),
        ReshardToCollectivesPass(),
        CanonicalizeCollectivesPass(),
        ReshardBlockArgumentsPass(),
    )
