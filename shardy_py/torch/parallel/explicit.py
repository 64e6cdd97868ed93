"""Programs whose communication is explicit, from results that leave it to a partitioner."""

from __future__ import annotations

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.communication.merge_equal_ops import MergeEqualOpsPass
from shardy_py.local.resolve_permutation_factors import ResolvePermutationFactorsPass
from shardy_py.plugins import Registry
from shardy_py.torch.frontend.semantics import extend
from shardy_py.torch.parallel.in_parts.computing_in_parts import ComputeInPartsPass
from shardy_py.torch.parallel.remade_constants import RemakeConstantsPass
from shardy_py.torch.parallel.uneven_reshapes import GatherUnevenReshapesPass
from shardy_py.transforms.finish.canonicalize_collectives import CanonicalizeCollectivesPass
from shardy_py.transforms.finish.canonicalize_reshards import CanonicalizeReshardsPass
from shardy_py.transforms.finish.insert_explicit_reshards import InsertExplicitReshardsPass
from shardy_py.transforms.finish.reshard_to_collectives import ReshardToCollectivesPass
from shardy_py.transforms.run import run


def explicit_program(program: Program, registry: Registry) -> Program:
    """Return a copy of a propagated program with all communication as collectives.

    Args:
        program: The program, with its table of shardings; it stays as it is.
        registry: What is known about ops.
    """
    copy = copy_program(program)
    copy.origin, copy.frontend = program.origin, program.frontend
    run(copy, [ComputeInPartsPass()], PassContext(registry))
    # The ops that these are made of are defined by their tags.
    registry = extend(copy, registry)
    passes = (
        InsertExplicitReshardsPass(enable_full_version=True, reshard_ops_without_rule=True),
        # Operators of PyTorch have no forms that exchange halos.
        ResolvePermutationFactorsPass(),
        GatherUnevenReshapesPass(),
        CanonicalizeReshardsPass(),
        # Before the reshards become collectives.
        RemakeConstantsPass(),
        ReshardToCollectivesPass(),
        CanonicalizeCollectivesPass(),
        # What several ops need in another sharding is moved once.
        MergeEqualOpsPass(),
    )
    run(copy, passes, PassContext(registry))
    return copy
