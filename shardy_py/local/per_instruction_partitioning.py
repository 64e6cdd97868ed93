"""Replace single ops by manual computations of what one device runs of them; all others stay global.

Mirrors per_instruction_partitioning.cc::PerInstructionPartitioningPass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.op_names import (
    CALL,
    CONSTRAINT,
    DATA_FLOW_EDGE,
    MANUAL_COMPUTATION,
    PROPAGATION_BARRIER,
    REPLICATED_TO_UNREDUCED,
    SHARDED_TO_UNREDUCED,
    SHARDING_GROUP,
)
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import all_in_region
from shardy_py.ir.interfaces.ops import IsTerminator, OpSemantics
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.local.collectives import COLLECTIVES
from shardy_py.local.convert_global_to_local import ConvertGlobalToLocalPass
from shardy_py.local.instructions import Instruction, partition
from shardy_py.local.local_ops import find_local_ops
from shardy_py.local.resolve_permutation_factors import ResolvePermutationFactorsPass
from shardy_py.support.identity import identity
from shardy_py.transforms.finish.insert_explicit_reshards import InsertExplicitReshardsPass
from shardy_py.transforms.finish.reshard_to_collectives import ReshardToCollectivesPass
from shardy_py.values import frozen

_LOW, _HIGH = "selectLow=", "selectHigh="
_STAYING = COLLECTIVES | {
    *(CALL, CONSTRAINT, DATA_FLOW_EDGE, MANUAL_COMPUTATION, SHARDING_GROUP),
    *(PROPAGATION_BARRIER, REPLICATED_TO_UNREDUCED, SHARDED_TO_UNREDUCED),
}


@frozen
class InstructionFilter:
    """A choice of ops by their names and by their numbers among all ops that could be chosen.

    Args:
        names: Parts of op names, of which one must fit; none for all ops.
        low: The first number.
        high: The last number, None for all that follow.
    """

    names: tuple[str, ...] = ()
    low: int = 0
    high: int | None = None

    @classmethod
    def parse(cls, text: str) -> InstructionFilter:
        """Return the choice of a text: ``dot, add, selectLow=3, selectHigh=9``, in any order.

        Mirrors per_instruction_partitioning.cc::parseFilter.

        >>> InstructionFilter.parse("dot, selectHigh=9").selects("stablehlo.dot_general", 9)
        True

        Raises:
            OptionError: a number is none.
        """
        items = [item for part in text.split(",") if (item := part.strip())]
        names = tuple(item for item in items if not item.startswith((_LOW, _HIGH)))
        low, high = ([_number(item, start) for item in items if item.startswith(start)][-1:] for start in (_LOW, _HIGH))
        return cls(names, low[0] if low else 0, high[0] if high else None)

    def selects(self, name: str, number: int) -> bool:
        """Return whether an op is chosen.

        Args:
            name: The name of the op.
            number: Its number.
        """
        is_between = self.low <= number and (self.high is None or number <= self.high)
        return is_between and (not self.names or any(part in name for part in self.names))


@frozen
class PerInstructionPartitioningPass:
    """Put each chosen op into a manual computation over the axes of its shardings, as what one device runs of it.

    Operands that do not divide are padded before it, results cut behind it. An op is chosen from those in the blocks of
    functions with a sharded operand or result; calls, and ops whose regions use values from around them, stay.

    Args:
        filter: The choice, see `InstructionFilter.parse`; all ops without one.
        enable_halo_exchange: Whether devices send each other the elements that they need along permutation factors;
            otherwise the tensors are gathered.
        replica_count: The number of replicas that the program runs as.
        partition_count: The number of its partitions. With one of them and several replicas, devices are replicas.
    """

    name: ClassVar[str] = "sdy-per-instruction-partitioning"

    filter: str = ""
    enable_halo_exchange: bool = False
    replica_count: int = 1
    partition_count: int = 1

    def run(self, program: Program, context: PassContext) -> None:
        """Partition the chosen ops.

        Raises:
            OptionError: the choice cannot be read.
            ShardyError: an op has tensors over several meshes, or there are no ops for communication.
        """
        chosen = InstructionFilter.parse(self.filter)
        candidates = enumerate(_candidates(program, context.semantics))
        instructions = [Instruction.of(op, program) for number, op in candidates if chosen.selects(op.name, number)]
        if instructions:
            ops = find_local_ops(program, context.semantics)
            partition(program, instructions, ops, self._passes, context)

    @property
    def _passes(self) -> tuple[Pass, ...]:
        replicas, partitions = self.replica_count, self.partition_count
        return (
            ResolvePermutationFactorsPass(self.enable_halo_exchange, replicas, partitions),
            InsertExplicitReshardsPass(enable_full_version=True, reshard_ops_without_rule=True),
            ReshardToCollectivesPass(),
            ConvertGlobalToLocalPass(
                trust_shardings=False,
                gather_unsupported_ops=True,
                replica_count=replicas,
                partition_count=partitions,
            ),
        )


def _candidates(program: Program, semantics: OpSemantics) -> Iterator[Op]:
    """Yield the ops that could be partitioned, in the order of the program."""
    for function in program.functions.values():
        for op in (op for region in function.regions for block in region.blocks for op in block.ops):
            if op.name in _STAYING or semantics.has_trait(op, IsTerminator) or _is_sharding_call(op):
                continue
            if _is_sharded(program, op) and not _captures(op):
                yield op


def _is_sharded(program: Program, op: Op) -> bool:
    shardings = (program.sharding(value) for value in (*op.operands, *op.results))
    return any(sharding is not None and not sharding.is_fully_replicated for sharding in shardings)


def _is_sharding_call(op: Op) -> bool:
    return str(op.attributes.get("call_target_name", "")).strip('"') in ("Sharding", "mhlo.sharding")


def _captures(op: Op) -> bool:
    """Return whether the regions of an op use values from around it."""
    inside = [inner for region in op.regions for inner in all_in_region(region)]
    blocks = {identity(block) for item in (op, *inside) for region in item.regions for block in region.blocks}
    values = (value.owner for inner in inside for value in inner.operands)
    return any(identity(owner.parent if isinstance(owner, Op) else owner) not in blocks for owner in values)


def _number(item: str, start: str) -> int:
    try:
        return int(item.removeprefix(start))
    except ValueError:
        message = f"{item!r} has no number"
        raise OptionError(Diagnostic("instruction-filter", message, hint=f"{start}3, for example")) from None
