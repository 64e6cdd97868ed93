"""Steps of all passes on communication: the rules that they ask for, and collectives for what they reshard."""

from __future__ import annotations

from attrs import evolve

from shardy_py.ir.graph.dead_ops import erase_dead_ops
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.communication.routes import STEPS
from shardy_py.transforms.finish.canonicalize_collectives import CanonicalizeCollectivesPass
from shardy_py.transforms.finish.reshard_to_collectives import ReshardToCollectivesPass


def with_extended_rules(semantics: OpSemantics) -> OpSemantics:
    """Return semantics as the conversion to local programs has them, with the rules that the reference lacks."""
    return semantics.with_options(evolve(semantics.options, extended=True, like_jit=False))


def erase_unused(program: Program, semantics: OpSemantics) -> None:
    """Erase ops that nothing needs, collectives too: modes of ops do not count users that are not there."""
    erase_dead_ops(program, semantics, pure=STEPS)


def write_collectives(program: Program, semantics: OpSemantics, context: PassContext) -> None:
    """Write collectives for the reshards that a pass has added, without those that nothing needs any more."""
    erase_unused(program, semantics)
    ReshardToCollectivesPass().run(program, context)
    CanonicalizeCollectivesPass().run(program, context)
    erase_unused(program, semantics)
