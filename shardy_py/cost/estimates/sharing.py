"""Communications that XLA's partitioner makes once for several ops.

It keeps what it has resharded (spmd_partitioner.cc::PartitionedHlo::Reshard): the same tensor is brought to the same
sharding once. It divides some products into groups of devices (dot_handler.cc::PartitionDot); what is gathered within
such groups is kept apart from what is gathered for everything else.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from shardy_py.cost.estimates.graph import Node, RuleOf, Tensor
from shardy_py.cost.estimates.op_kinds import OpKinds
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.ir.graph.op_names import ALL_REDUCE, REDUCE_SCATTER
from shardy_py.ir.graph.program import Op, Value
from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.values import frozen


@frozen(eq=False)
class Sharing:
    """Finds communications that are the same.

    Args:
        kinds: The kinds of ops.
        rule_of: Gives the rule of an op.
        sizes: Measures values.
    """

    kinds: OpKinds
    rule_of: RuleOf
    sizes: LocalSizes

    def is_shared(self, op: Op, inputs: Sequence[Tensor], equal: Node) -> bool:
        """Return whether a communication is the same as an equal one. Sums never are: each op has its own.

        Args:
            op: The communication.
            inputs: Its operands.
            equal: The equal one.
        """
        if op.name in (ALL_REDUCE, REDUCE_SCATTER):
            return False
        if any(one is not other for one, other in zip(inputs, equal.inputs, strict=True)):
            return False
        return self._is_in_groups(op) == self._is_in_groups(equal.op)

    def _is_in_groups(self, op: Op) -> bool:
        """Return whether a tensor is moved for a product, within the groups of devices into which that is divided."""
        (value,) = op.results
        users = (user for user in value.users if self.kinds.of(user).is_contraction and len(user.operands) == 2)
        return any(self._groups_follow(user, user.operands.index(value)) for user in users)

    def _groups_follow(self, product: Op, number: int) -> bool:
        """Return whether the groups of a product are those of its batch, or of the other dimensions of an operand.

        Of two operands that the result is divided like, the one is followed that leaves less of the other to be copied.
        """
        rule = self.rule_of(product)
        if rule is None or len(product.results) != 1:
            return False
        given = [self._before(value) for value in product.operands]
        batch = {factor for factor in range(rule.num_factors) if rule.is_batching(factor)}
        if self._parts(rule, 2, product.results[0], batch) > 1:
            return True
        parts, follows = [0, 0], [False, False]
        for operand, value in enumerate(given):
            own = {factor for dim in rule.operand_mappings[operand] for factor in dim}
            own -= batch | set(rule.reduction_factors)
            parts[operand] = self._parts(rule, operand, value, own)
            follows[operand] = 1 < parts[operand] == self._parts(rule, 2, product.results[0], own)
        if all(follows):
            first, second = (self.sizes.bytes(value) for value in given)
            return number == (0 if parts[0] * second < parts[1] * first else 1)
        return follows[number]

    def _before(self, value: Value) -> Value:
        """Return what a value is before it is moved."""
        op = value.defining_op
        is_moved = op is not None and self.kinds.of(op).is_moving and op.name not in (ALL_REDUCE, REDUCE_SCATTER)
        return op.operands[0] if op is not None and is_moved else value

    def _parts(self, rule: OpShardingRule, number: int, value: Value, factors: Collection[int]) -> int:
        """Return the number of parts into which a tensor of an op is divided along some factors."""
        sharding = self.sizes.sharding(value)
        mesh = None if sharding is None else self.sizes.mesh(sharding)
        if sharding is None or mesh is None:
            return 1
        dims = zip((*rule.operand_mappings, *rule.result_mappings)[number], sharding.dim_shardings, strict=True)
        return prod(axes_size(dim.axes, mesh) for own, dim in dims if own and factors and set(own) <= set(factors))
