"""Reductions over whole dimensions.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shardy_dialects.stablehlo.attributes import integers_of
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets, shape_of
from shardy_dialects.stablehlo.regions import region_combiner, second_operands
from shardy_py.indexing import OpIndexing, op_maps
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import RecursiveMemoryEffects, Reduction
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rules import reduction

if TYPE_CHECKING:
    from shardy_dialects.stablehlo.definitions import Maps
    from shardy_py.plugins import ElementBuilder, Scalar

FACETS = LazyFacets(__name__)


def register(definitions: Definitions) -> None:
    """Define the reduction."""
    definitions.define(
        "stablehlo.reduce",
        reduce_rule,
        traits=(RecursiveMemoryEffects, Reduction),
        combiner=region_combiner,
        initial_of=second_operands,
        maps=reduce_maps,
        body=reduce_body,
        local=FACETS.local("localize_reduce"),
        cost=FACETS.cost("ReduceCost"),
    )


def reduce_rule(op: Op) -> OpShardingRule | None:
    """Reduce along the given dimensions of all inputs, pass the others through to all results."""
    return reduction(op, integers_of(op, "dimensions"))


def reduce_maps(op: Op) -> OpIndexing:
    """Read all elements along the reduced dimensions, and the initial values."""
    output, shape, count = shape_of(op.results[0]), shape_of(op.operands[0]), len(op.results)
    dimensions = integers_of(op, "dimensions")
    everywhere = op_maps.broadcast_to_output((), output, ())
    return OpIndexing(
        [op_maps.reduce(output, shape, dimensions)] * count + [op_maps.scalar(output)] * count,
        [op_maps.reduce_to_output(shape, dimensions)] * count + [everywhere] * count,
    )


def reduce_body(b: ElementBuilder, op: Op) -> Sequence[Scalar]:
    """Combine the elements along the reduced dimensions with the initial values."""
    return combined(b, op, reduce_maps(op).output_to_input)


def combined(b: ElementBuilder, op: Op, maps: Maps) -> Sequence[Scalar]:
    """Return the combination of the elements that the maps run over with the initial values."""
    count = len(op.results)
    initial = [b.operand(count + number) for number in range(count)]

    def step(index: Sequence[Scalar], carried: Sequence[Scalar]) -> Sequence[Scalar]:
        return b.call(op, [*carried, *(b.operand(number, index) for number in range(count))])

    return b.reduce(maps[0], initial, step)
