"""A dialect for resharding, with ops of every kind that is treated in its own way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shardy_py.ir import Builder, Op, Value, verify
from shardy_py.ir.interfaces.ops import OpOperand, ShardableDataFlowOpInterface
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.plugins import (
    Concatenation,
    ConstantLike,
    Contraction,
    CrossDeviceReduction,
    Dialect,
    FoldsIntoConstant,
    IsolatedFromAbove,
    IsTerminator,
    Maximum,
    PropagationBarrier,
    Pure,
    Reduction,
    Registry,
    Reshape,
    ReturnLike,
    Sum,
    UnitedByMlir,
)
from shardy_py.sharding.parse import parse_op_sharding_rule
from shardy_py.sharding.rule_builder import pointwise_rule


class Loop(ShardableDataFlowOpInterface):
    """A loop: operands and yielded values flow into the block arguments and results."""

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        return [OpOperand(op, owner.index), OpOperand(op.regions[0].block.last, owner.index)]

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value:
        return op.results[target.index]

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value:
        return op.results[source.number]

    def get_non_edge_owner_targets(self, op: Op, owner: Value) -> Sequence[Value]:
        return [op.regions[0].block.arguments[owner.index]]


def fixed(text: str):
    """Return a function that gives always the same rule."""
    return lambda op: parse_op_sharding_rule(text)


def registry() -> Registry:
    """Return the registry of the dialect, with the few core ops it needs."""
    toy = Dialect("toy")
    toy.op("toy.add", traits=[Pure, Sum], rule=pointwise_rule)
    toy.op("toy.max", traits=[Pure, Maximum], rule=pointwise_rule)
    toy.op("toy.neg", traits=[Pure], rule=pointwise_rule)
    toy.op("toy.constant", traits=[Pure, ConstantLike])
    toy.op("toy.folded", traits=[Pure, ConstantLike, UnitedByMlir])
    toy.op("toy.shift", rule=fixed("<([i, j])->([i, j]) {i=8, j=8} permutation={j}>"))
    toy.op("toy.sort", rule=fixed("<([i, j])->([i, j]) {i=8, j=8} need_replication={j}>"))
    toy.op("toy.custom", rule=fixed("<([i, j])->([i, j]) {i=8, j=8}, custom>"))
    toy.op("toy.sum", traits=[Reduction], rule=fixed("<([i, j])->([i]) {i=8, j=8} reduction={j}>"))
    toy.op("toy.merge", traits=[Reshape], rule=fixed("<([i, j])->([ij]) {i=2, j=4}>"))
    product = fixed("<([i, k], [k, j])->([i, j]) {i=8, j=8, k=8} reduction={k}>")
    toy.op("toy.matmul", traits=[Contraction], rule=product)
    toy.op("toy.summing_matmul", traits=[Contraction], rule=product, sums_collectives=True)
    toy.op(
        "toy.scaled",
        traits=[Contraction],
        rule=fixed("<([i, k], [k, j], [l])->([i, j]) {i=8, j=8, k=8, l=8} reduction={k}>"),
    )
    joined = "<([i, j], [i, j])->([i, j]) {i=8, j=16} need_replication={j}>"
    toy.op("toy.join", traits=[Concatenation], rule=fixed(joined))
    toy.op("toy.unruled")
    toy.op("toy.like", traits=[Pure, FoldsIntoConstant("FoldsIntoConstant", "toy.folded", "value")])
    toy.op("toy.concat", traits=[Concatenation], rule=fixed("<([i, j], [i, k])->([i, j]) {i=8, j=16, k=8}>"))
    toy.op("toy.two", rule=fixed("<([i, j])->([i, j], [i, j]) {i=8, j=8}>"))
    toy.op("toy.all_reduce", traits=[CrossDeviceReduction])
    toy.op("toy.effect", rule=fixed("<([i, j])->() {i=8, j=8}>"))
    toy.op("toy.loop", data_flow=Loop())
    toy.op("toy.isolated", traits=[IsolatedFromAbove])
    toy.op("toy.yield", traits=[IsTerminator, Pure])
    toy.op("sdy.propagation_barrier", traits=[PropagationBarrier, Pure])
    toy.op("sdy.reshard", traits=[Pure], sharding_attribute="sharding")
    toy.op("sdy.constant", traits=[Pure, ConstantLike])
    toy.op("sdy.return", traits=[IsTerminator, ReturnLike, Pure])
    toy.op("func.return", traits=[IsTerminator, ReturnLike, Pure])
    return Registry.of([toy])


REGISTRY = registry()


def run(pass_: Pass, builder: Builder) -> list[str]:
    """Run a pass, verify the graph, and return the ops of the first function in short form."""
    pass_.run(builder.program, PassContext(REGISTRY))
    verify(builder.program)
    return lines(builder)


def lines(builder: Builder) -> list[str]:
    """Return the ops of the first function: ``%result = name %operands sharding``, each with its axes if it has any."""
    function = next(iter(builder.program.functions.values()))
    names: dict[int, str] = {}
    for argument in function.regions[0].block.arguments:
        names[argument.id] = f"%arg{argument.index}"
    return list(_lines(builder, function.regions[0].block.ops, names))


def _lines(builder: Builder, ops: Iterable[Op], names: dict[int, str]) -> Iterable[str]:
    for op in ops:
        inner = [inner for region in op.regions for block in region.blocks for inner in block.ops]
        for region in op.regions:
            for argument in region.block.arguments:
                names[argument.id] = f"%in{argument.index}"
        yield from _lines(builder, inner, names)
        for result in op.results:
            names[result.id] = f"%{sum(name[1:].isdigit() for name in names.values())}"
        results = ", ".join(names[result.id] for result in op.results)
        axes = op.attributes.get("reduction_axes") or op.attributes.get("axes")
        shardings = [builder.program.sharding(result) for result in op.results]
        texts = [str(item).removeprefix("<@mesh, ").removesuffix(">") for item in shardings if item is not None]
        yield " ".join(
            filter(
                None,
                [
                    results and f"{results} =",
                    op.name.removeprefix("toy.").removeprefix("sdy."),
                    axes and str(axes),
                    ", ".join(names[value.id] for value in op.operands),
                    "; ".join(texts),
                ],
            )
        )
