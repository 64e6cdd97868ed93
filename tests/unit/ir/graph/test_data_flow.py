"""Which value carries the sharding of which."""

import pytest

from shardy_py.ir import Builder, tensor
from shardy_py.ir.graph.data_flow import edge_of_source, edge_of_target, edge_user, shardable_value
from shardy_py.plugins import Dialect, IsTerminator, OpOperand, Registry, ShardableDataFlowOpInterface

T = tensor(8)


class Loop(ShardableDataFlowOpInterface):
    """Operand, returned value, argument and result flow together; the result owns the edge."""

    def get_edge_sources(self, op, owner):
        """Return the operand and the returned value."""
        return OpOperand(op, owner.index), OpOperand(op.regions[0].block.terminator, owner.index)

    def get_edge_owner_from_target(self, op, target):
        """Return the result."""
        return op.results[target.index]

    def get_edge_owner_from_source(self, op, source):
        """Return the result."""
        return op.results[source.number]


@pytest.fixture(scope="module")
def registry():
    """Return a registry with a loop."""
    toy = Dialect("toy")
    toy.op("toy.loop", data_flow=Loop())
    toy.op("toy.yield", traits=[IsTerminator])
    return Registry.of([toy])


class Example:
    """A loop, with or without an edge op, and a reduction."""

    def __init__(self, *, edge):
        b = Builder()
        with b.function("main", [T]) as (self.x,):
            with b.region_op("toy.loop", [self.x], [T]) as self.loop, b.region(self.loop, [T]) as (self.argument,):
                self.inner = b.op("toy.f", [self.argument], [T])
                self.yield_ = b.emit("toy.yield", [self.inner])
            self.result = self.loop.result
            self.edge = b.op("sdy.data_flow_edge", [self.result], [T]) if edge else None
            with b.region_op("toy.reduce", [self.x], [T]) as reduce, b.region(reduce, [T]) as (self.scalar,):
                b.op("toy.yield", [self.scalar])
            b.return_(self.edge or self.result)


def test_without_an_edge_op_the_owner_carries_its_targets(registry):
    """The argument of a loop maps to the result that owns its edge."""
    example = Example(edge=False)
    assert shardable_value(example.argument, registry) is example.result
    assert shardable_value(example.result, registry) is example.result
    assert edge_user(example.result) is None
    assert edge_of_target(example.argument, registry) is None


def test_with_an_edge_op_its_result_carries_all_targets(registry):
    """Both the owner and the other targets map to the result of the edge op."""
    example = Example(edge=True)
    assert shardable_value(example.argument, registry) is example.edge
    assert shardable_value(example.result, registry) is example.edge
    assert edge_user(example.result) is example.edge.owner
    assert edge_of_target(example.argument, registry) is example.edge.owner


def test_sources_know_their_edge(registry):
    """An operand of the op and one of the terminator lead to the same edge; other operands to none."""
    example = Example(edge=True)
    assert edge_of_source(OpOperand(example.loop, 0), registry) is example.edge.owner
    assert edge_of_source(OpOperand(example.yield_, 0), registry) is example.edge.owner
    assert edge_of_source(OpOperand(example.inner.owner, 0), registry) is None


def test_other_values_carry_their_own_sharding(registry):
    """Results and function arguments map to themselves, arguments of plain regions to nothing."""
    example = Example(edge=True)
    assert shardable_value(example.x, registry) is example.x
    assert shardable_value(example.inner, registry) is example.inner
    assert shardable_value(example.edge, registry) is example.edge
    assert shardable_value(example.scalar, registry) is None


def test_an_owner_with_a_second_use_has_no_edge():
    """The edge op has to be the only user of its owner."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        edge = b.op("sdy.data_flow_edge", [x], [T])
        assert edge_user(x) is edge.owner
        b.return_(x)
    assert edge_user(x) is None
    assert edge_user(None) is None
