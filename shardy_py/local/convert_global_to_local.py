"""Replace the tensors of a program by the shards of one device, and its collectives by ops on groups of devices.

Mirrors convert_global_to_local.cc::ConvertGlobalToLocalPass.
"""

from __future__ import annotations

from itertools import count
from typing import ClassVar

from attrs import evolve, field

from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.passes import NO_TEXT, PassContext
from shardy_py.local.collectives import CollectiveOptions
from shardy_py.local.converter import Converter
from shardy_py.local.fallback import Fallback
from shardy_py.local.local_ops import find_local_ops, last_channel
from shardy_py.values import frozen


@frozen
class ConvertGlobalToLocalPass:
    """Convert every function to the form that each device runs, on its shards.

    All communication must be explicit, as collectives, before. The values keep their shardings, which tell the part
    that each device has. A dimension that does not divide into equal parts has padding at the end of its last parts,
    which holds anything: ops that reduce along it get neutral values there first.

    Args:
        per_dim_all_gather: Whether an all-gather of several dimensions becomes one per dimension.
        combine_multi_dimension_reduce_scatter: Whether a reduce-scatter of several dimensions becomes one, and not an
            all-reduce and a slice.
        enable_rgv3: Whether groups of devices that are whole axes of a mesh are written as those.
        trust_shardings: Whether the shardings of an op are taken as they are, as in the reference. Otherwise each op
            must be sharded as its rule asks for.
        gather_unsupported_ops: Whether an op without a local form runs on gathered operands, with a warning; otherwise
            it is an error.
        replica_count: The number of replicas that the program runs as.
        partition_count: The number of its partitions. With one of them and several replicas, devices are replicas.
        padding: A number that the padding of all values shall hold, for tests: results must not depend on it. NaN and
            large numbers show where padding counts.
        early_gathers: Whether what a broadcast or a constant made is gathered before it, where shardings are not
            trusted. Without, collectives are those of the program with explicit ones.
    """

    name: ClassVar[str] = "sdy-convert-global-to-local"

    per_dim_all_gather: bool = False
    combine_multi_dimension_reduce_scatter: bool = False
    enable_rgv3: bool = False
    trust_shardings: bool = True
    gather_unsupported_ops: bool = False
    replica_count: int = 1
    partition_count: int = 1
    padding: float | None = field(default=None, metadata=NO_TEXT)
    early_gathers: bool = field(default=True, metadata=NO_TEXT)

    def run(self, program: Program, context: PassContext) -> None:
        """Convert the functions of a program.

        Raises:
            ShardyError: an op has no local form, or communication is not explicit.
        """
        options = CollectiveOptions(
            self.per_dim_all_gather, self.combine_multi_dimension_reduce_scatter, self.early_gathers
        )
        fallback = Fallback(options, self.trust_shardings, self.gather_unsupported_ops, context.warnings)
        semantics = context.semantics
        if not self.trust_shardings:
            # How an op runs on shards follows from rules that the reference lacks, too.
            semantics = semantics.with_options(evolve(semantics.options, extended=True, like_jit=False))
        ops = find_local_ops(program, semantics)
        if self.replica_count > 1 and self.partition_count <= 1:
            ops = ops.for_replicas()
        if self.enable_rgv3:
            ops = ops.for_mesh_axes()
        channels = count(last_channel(program) + 1).__next__
        records = context.local_values, context.local_collectives
        partial = context.partial_values
        Converter(program, semantics, ops, options, fallback, channels, self.padding, *records, partial).run()
