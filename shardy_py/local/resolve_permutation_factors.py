"""Make the communication explicit that permutation factors need.

Mirrors resolve_permutation_factors.cc::ResolvePermutationFactorsPass, for every op with a local form.
"""

from __future__ import annotations

from itertools import count
from typing import ClassVar

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.local_ops import find_local_ops, last_channel
from shardy_py.local.permutation import PermutationResolver
from shardy_py.values import frozen


@frozen
class ResolvePermutationFactorsPass:
    """Put what moves along sharded permutation factors into the program: halo exchanges, or reshards.

    An op that needs no element of another device stays as it is.

    Args:
        enable_halo_exchange: Whether an op becomes a manual computation, in which devices send each other the elements
            that they need. Otherwise its operands are resharded to whole dimensions, and its results back.
        replica_count: The number of replicas that the program runs as.
        partition_count: The number of its partitions. With one of them and several replicas, devices are replicas.
    """

    name: ClassVar[str] = "sdy-resolve-permutation-factors"

    enable_halo_exchange: bool = False
    replica_count: int = 1
    partition_count: int = 1

    def run(self, program: Program, context: PassContext) -> None:
        """Resolve the permutation factors of all ops.

        Raises:
            UnsupportedError: no plugin has ops for communication.
        """
        ops = find_local_ops(program, context.semantics)
        if self.replica_count > 1 and self.partition_count <= 1:
            ops = ops.for_replicas()
        channel = count(last_channel(program) + 1).__next__
        resolver = PermutationResolver(program, context.semantics, ops, channel, exchanges=self.enable_halo_exchange)
        for op in list(all_ops(program)):
            resolver.resolve(op)
