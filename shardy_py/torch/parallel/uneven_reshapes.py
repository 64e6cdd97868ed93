"""Reshapes whose dimensions do not divide, made whole before local programs are."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.agreement import overflowing_factors
from shardy_py.local.whole_factors import make_whole
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen


@frozen
class GatherUnevenReshapesPass:
    """Reshard what an op merges or splits where its parts would not be those of the shards.

    Five rows of eight elements on two devices are three rows and two; of the forty elements each device has twenty.
    A sharded dimension of size 1 that an op repeats is whole, too. With the reshards in the program, its collectives
    are all that run.
    """

    name: ClassVar[str] = "gather-uneven-reshapes"

    def run(self, program: Program, context: PassContext) -> None:
        """Make the dimensions whole of all factors that do not divide."""
        for op in list(all_ops(program)):
            rule = context.semantics.get_sharding_rule(op) if op.results else None
            if rule is None:
                continue
            factors = _uneven_factors(program, op, rule) | _repeated_ones(program, op, rule)
            if factors:
                make_whole(program, op, rule, factors)


def _repeated_ones(program: Program, op: Op, rule: OpShardingRule) -> set[int]:
    """Return the factors of size 1 of sharded dimensions that no result has; each device repeats their element."""
    result_factors = {factor for mapping in rule.result_mappings for dim in mapping for factor in dim}
    repeated: set[int] = set()
    for value, mapping in zip(op.operands, rule.operand_mappings, strict=True):
        sharding = program.sharding(value)
        for dim, factors in enumerate(mapping if sharding is not None else ()):
            if sharding is not None and sharding.of_dimension(dim).sharded_size(_mesh(program, sharding)) > 1:
                repeated |= {
                    factor for factor in factors if rule.factor_sizes[factor] == 1 and factor not in result_factors
                }
    return {factor for factor in repeated if rule.is_pass_through(factor)}


def _mesh(program: Program, sharding: TensorSharding) -> Mesh:
    return sharding.mesh if isinstance(sharding.mesh, Mesh) else program.meshes[sharding.mesh]


def _uneven_factors(program: Program, op: Op, rule: OpShardingRule) -> set[int]:
    """Return the factors that do not divide in some tensor of an op, and those that share a dimension with them."""
    uneven: set[int] = set()
    for value, mapping in zip((*op.operands, *op.results), rule.mappings, strict=True):
        sharding = program.sharding(value)
        if sharding is not None and mapping:
            uneven |= overflowing_factors(sharding, mapping, rule, _mesh(program, sharding))
    count = -1
    while count != len(uneven):
        count = len(uneven)
        for mapping in rule.mappings:
            for dim in mapping:
                uneven |= set(dim) if uneven.intersection(dim) else set()
    return uneven
