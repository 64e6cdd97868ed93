"""A dialect with hand-written rules, so that the engine is tested without any real one."""

from __future__ import annotations

from collections.abc import Iterable

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.ops import (
    Broadcast,
    Elementwise,
    ForwardPassThrough,
    IsTerminator,
    OpOperand,
    PassThrough,
    PropagationBarrier,
    Pure,
    RecursiveMemoryEffects,
    ShardableDataFlowOpInterface,
)
from shardy_py.plugins import Dialect, Registry
from shardy_py.propagation import PropagationOptions, propagate_program
from shardy_py.sharding.parse import parse_op_sharding_rule
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, pointwise_rule


class Loop(ShardableDataFlowOpInterface):
    """A loop: operands and yielded values flow into the block arguments and results."""

    def get_edge_sources(self, op: Op, owner: Value) -> list[OpOperand]:
        body = op.regions[0].block
        return [OpOperand(op, owner.index), OpOperand(body.last, owner.index)]

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value:
        return op.results[target.index]

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value:
        return op.results[source.number]

    def get_non_edge_owner_targets(self, op: Op, owner: Value) -> list[Value]:
        return [op.regions[0].block.arguments[owner.index]]


def matmul_rule(op: Op) -> OpShardingRule:
    """Return the rule of a product of two matrices."""
    (rows, inner), (_, columns) = op.operands[0].shape, op.operands[1].shape
    return parse_op_sharding_rule(f"<([i, k], [k, j])->([i, j]) {{i={rows}, j={columns}, k={inner}}} reduction={{k}}>")


def merge_rule(op: Op) -> OpShardingRule:
    """Return the rule of a reshape that merges two dimensions."""
    rows, columns = op.operands[0].shape
    return parse_op_sharding_rule(f"<([i, j])->([ij]) {{i={rows}, j={columns}}}>")


def repeat_rule(op: Op) -> OpShardingRule:
    """Return the rule of a vector repeated along a new dimension."""
    builder = OpShardingRuleBuilder.for_op(op)
    builder.add_factor([0], [0], op.operands[0].shape[0])
    return builder.add_factor([None], [1], op.results[0].shape[1]).build()


def toy_registry() -> Registry:
    """Return the registry of the toy dialect, with the few core ops it needs."""
    toy = Dialect("toy")
    toy.op("toy.add", traits=[Elementwise, Pure], rule=pointwise_rule)
    toy.op("toy.neg", traits=[Elementwise, Pure], rule=pointwise_rule)
    toy.op("toy.effect", traits=[Elementwise], rule=pointwise_rule)
    toy.op("toy.move", traits=[PassThrough, Pure], rule=pointwise_rule)
    toy.op("toy.slice", traits=[ForwardPassThrough], rule=pointwise_rule)
    toy.op("toy.matmul", traits=[Pure], rule=matmul_rule)
    toy.op("toy.merge", traits=[PassThrough], rule=merge_rule)
    toy.op("toy.repeat", traits=[Broadcast], rule=repeat_rule)
    toy.op("toy.two", rule=lambda op: parse_op_sharding_rule("<([i])->([i], [j]) {i=8, j=8}>"))
    toy.op("toy.loop", traits=[RecursiveMemoryEffects], data_flow=Loop())
    toy.op("toy.yield", traits=[IsTerminator, Pure])
    toy.op("sdy.propagation_barrier", traits=[PropagationBarrier])
    toy.op("sdy.sharding_constraint", traits=[Elementwise], rule=pointwise_rule, sharding_attribute="sharding")
    toy.op("func.return", traits=[IsTerminator, Pure])
    return Registry.of([toy])


def propagate(builder: Builder, **options: object) -> None:
    """Propagate what was built so far."""
    propagate_program(builder.program, toy_registry(), PropagationOptions(**options))


def texts(builder: Builder, values: Iterable[Value]) -> list[str | None]:
    """Return the dimension shardings of values as text, with the braces of replicated axes if any."""
    actual = (builder.program.sharding(value) for value in values)
    return [None if item is None else str(item).removeprefix("<@mesh, ").removesuffix(">") for item in actual]
