"""Reshapes whose dimensions do not divide, made whole before local programs are."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph import Op, Program
from shardy_py.ir.op_index import all_ops
from shardy_py.ir.passes import PassContext
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.transforms.local.agreement import overflowing_factors
from shardy_py.transforms.local.whole_factors import make_whole
from shardy_py.values import frozen


@frozen
class GatherUnevenReshapesPass:
    """Reshard what an op merges or splits where its parts would not be those of the shards.

    Five rows of eight elements on two devices are three rows and two; of the forty elements each device has twenty.
    With the reshards in the program, its collectives are all that run.
    """

    name: ClassVar[str] = "gather-uneven-reshapes"

    def run(self, program: Program, context: PassContext) -> None:
        """Make the dimensions whole of all factors that do not divide."""
        for op in list(all_ops(program)):
            rule = context.semantics.get_sharding_rule(op) if op.results else None
            if rule is None:
                continue
            factors = _uneven_factors(program, op, rule)
            if factors:
                make_whole(program, op, rule, factors)


def _uneven_factors(program: Program, op: Op, rule: OpShardingRule) -> set[int]:
    """Return the factors that do not divide in some tensor of an op, and those that share a dimension with them."""
    found: set[int] = set()
    for value, mapping in zip((*op.operands, *op.results), rule.mappings, strict=True):
        sharding = program.sharding(value)
        if sharding is not None and mapping:
            mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else program.meshes[sharding.mesh]
            found |= overflowing_factors(sharding, mapping, rule, mesh)
    count = -1
    while count != len(found):
        count = len(found)
        for mapping in rule.mappings:
            for dim in mapping:
                found |= set(dim) if found.intersection(dim) else set()
    return found
