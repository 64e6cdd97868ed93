"""A dialect of somebody else: everything it needs comes from the plugin surface."""

from attrs import frozen

from shardy_py.plugins import Dialect, Elementwise, OpOperand, ShardableDataFlowOpInterface, hookimpl
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, pointwise_rule

acme = Dialect("acme")
acme.op("acme.add", traits=[Elementwise], rule=pointwise_rule)


@acme.op("acme.flip")
def flip(op):
    """Swap the two dimensions."""
    rows, columns = op.operands[0].shape
    builder = OpShardingRuleBuilder([(rows, columns)], [(columns, rows)])
    builder.add_factor([0], [1], rows)
    builder.add_factor([1], [0], columns)
    return builder.build()


@frozen
class RepeatDataFlow(ShardableDataFlowOpInterface):
    """A loop: operand, what the body returns, argument and result are sharded alike; the result owns the edge."""

    def get_edge_sources(self, op, owner):
        """Return the operand, and what the body returns for it."""
        return OpOperand(op, owner.index), OpOperand(op.regions[0].block.terminator, owner.index)

    def get_edge_owner_from_target(self, op, target):
        """Return the result with the number of the target."""
        return op.results[target.index]

    def get_edge_owner_from_source(self, op, source):
        """Return the result with the number of the operand."""
        return op.results[source.number]

    def get_non_edge_owner_targets(self, op, owner):
        """Return the argument of the body."""
        return (op.regions[0].block.arguments[owner.index],)


acme.op("acme.repeat", data_flow=RepeatDataFlow())


@hookimpl
def shardy_register_dialects():
    """Return the dialect."""
    return [acme]
