"""Elementwise ops: every dimension passes through; predicates of selects and bounds of clamps may be scalars.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING

from shardy_dialects.stablehlo.attributes import integers_of
from shardy_dialects.stablehlo.bodies import call_region, move
from shardy_dialects.stablehlo.constants import CLIENT_CONSTANT
from shardy_dialects.stablehlo.definitions import Definitions, RuleFunction, shape_of
from shardy_dialects.stablehlo.elementwise.ops import (
    BROADCASTING,
    CLIENT_OPS,
    CLIENT_OPS_OF_TWO,
    FACETS,
    OPS,
    TRANSCENDENTAL_BROADCASTING,
    ElementwiseOp,
)
from shardy_py.indexing import IndexingMap, OpIndexing, constant, dim, op_maps
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.plugins import (
    ConstantFoldable,
    Elementwise,
    FoldsIntoConstant,
    Pure,
    RecursiveMemoryEffects,
    Trait,
    Unpartitioned,
)
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, pointwise_rule, tensor_shape
from shardy_py.sharding.rules.pointwise import aligned_rule
from shardy_py.support.element_types import mlir_element_bits

if TYPE_CHECKING:
    from shardy_dialects.stablehlo.definitions import MapsOf


def register(definitions: Definitions) -> None:
    """Define the elementwise ops."""
    for entry in OPS:
        definitions.define(
            entry.name,
            pointwise_rule,
            traits=(*ELEMENTWISE_TRAITS, *entry.traits),
            maps=elementwise_maps,
            body=entry.body,
            local=local_by_types,
            cost=FACETS.cost("ElementCost") if entry.in_library and entry.cost is None else entry.cost,
        )
    definitions.define(
        ("stablehlo.uniform_dequantize", "stablehlo.uniform_quantize"),
        pointwise_rule,
        extended=True,
        traits=ELEMENTWISE_TRAITS,
        maps=elementwise_maps,
    )
    definitions.define(
        "stablehlo.bitcast_convert",
        bitcast_convert_rule,
        traits_of=bitcast_convert_traits,
        maps=bitcast_convert_maps,
        body=FACETS.body("bitcast_convert", module="conversion"),
        local=local_by_types,
        cost=FACETS.cost("BitcastCost"),
    )
    definitions.define(
        "stablehlo.map",
        pointwise_rule,
        extended=True,
        traits=(RecursiveMemoryEffects, Unpartitioned),
        maps=elementwise_maps,
        body=call_region,
        cost=FACETS.cost("MapCost"),
    )
    _define_client_ops(definitions)
    _define_hlo_ops(definitions)


def _define_client_ops(definitions: Definitions) -> None:
    """Define the ops of CHLO. The reference has no rule for any of them; here they have one as an extended rule."""

    def define(
        entry: ElementwiseOp, rule: RuleFunction, *traits: Trait, maps: MapsOf | None = elementwise_maps
    ) -> None:
        definitions.define(entry.name, rule, extended=True, traits=traits, maps=maps, body=entry.body, cost=entry.cost)

    for entry in CLIENT_OPS:
        define(entry, pointwise_rule, *ELEMENTWISE_TRAITS)
    for entry in CLIENT_OPS_OF_TWO:
        define(entry, pointwise_rule, Pure)
    costs = {entry.name.removeprefix("chlo."): entry.cost for entry in CLIENT_OPS_OF_TWO}
    costs |= dict.fromkeys(TRANSCENDENTAL_BROADCASTING, FACETS.cost("TranscendentalCost"))
    bodies = {entry.name.rpartition(".")[2]: entry.body for entry in (*OPS, *CLIENT_OPS_OF_TWO)}
    for name in BROADCASTING:
        entry = ElementwiseOp(f"chlo.broadcast_{name}", bodies[name], costs.get(name))
        define(entry, broadcasting_rule, *ELEMENTWISE_TRAITS, maps=broadcasting_maps)
    folds = FoldsIntoConstant("FoldsIntoConstant", CLIENT_CONSTANT, "value")
    define(ElementwiseOp("chlo.constant_like"), pointwise_rule, *ELEMENTWISE_TRAITS, folds)


def _define_hlo_ops(definitions: Definitions) -> None:
    """Define ops that remain of MHLO in modules made from HLO.

    XLA brings rules for some of them of its own (``sdy/…/extensions/mhlo_extensions.cc``); `mhlo.erf` has none.
    """
    definitions.define(
        "mhlo.erf",
        pointwise_rule,
        extended=True,
        never_like_jit=True,
        traits=ELEMENTWISE_TRAITS,
        maps=elementwise_maps,
        body=FACETS.body("function", "math.erf", module="functions"),
        cost=FACETS.cost("TranscendentalCost"),
    )
    definitions.define("mhlo.copy", pointwise_rule, traits=(Pure, Elementwise), maps=elementwise_maps, body=move)


def bitcast_convert_rule(op: Op) -> OpShardingRule:
    """Pass all dimensions through but the innermost one that only the narrower element type has."""
    in_shape, out_shape = tensor_shape(op.operands[0]), tensor_shape(op.results[0])
    builder = OpShardingRuleBuilder.for_op(op)
    builder.add_pointwise(min(in_shape, out_shape, key=len))
    if len(in_shape) < len(out_shape):
        builder.add_factor({}, {0: len(out_shape) - 1}, out_shape[-1], kind=FactorKind.NEED_REPLICATION)
    elif len(in_shape) > len(out_shape):
        builder.add_factor({0: len(in_shape) - 1}, {}, in_shape[-1], kind=FactorKind.NEED_REPLICATION)
    return builder.build()


def bitcast_convert_traits(op: Op) -> Iterable[Trait]:
    """Return the elementwise traits where both element types are of one width."""
    if tensor_shape(op.operands[0]) == tensor_shape(op.results[0]):
        return ELEMENTWISE_TRAITS
    return ()


ELEMENTWISE_TRAITS = (Pure, Elementwise, ConstantFoldable)


def broadcasting_rule(op: Op) -> OpShardingRule:
    """Align the operands with the last dimensions of the result, or as ``broadcast_dimensions`` says.

    Expanded dimensions of size 1 do not take part in the factor of the result's dimension.
    """
    out_shape = tensor_shape(op.results[0])
    return aligned_rule(op, [_aligned_dims(op, tensor_shape(value), out_shape) for value in op.operands])


def _aligned_dims(op: Op, shape: tuple[int, ...], out_shape: tuple[int, ...]) -> dict[int, int]:
    """Return result dimension to operand dimension, where their sizes are equal."""
    shift = len(out_shape) - len(shape)
    targets = tuple(range(shift, len(out_shape)))
    if shift:
        targets = integers_of(op, "broadcast_dimensions") or targets
    return {target: dim for dim, target in enumerate(targets) if shape[dim] == out_shape[target]}


def broadcasting_maps(op: Op) -> OpIndexing:
    """Read every operand where its dimensions are aligned; those of size 1 that are expanded at 0."""
    output = shape_of(op.results[0])
    maps = []
    for value in op.operands:
        shape = shape_of(value)
        places = {dim: target for target, dim in _aligned_dims(op, shape, output).items()}
        maps.append(
            IndexingMap.of_shape(
                output, [dim(places[number]) if number in places else constant(0) for number in range(len(shape))]
            )
        )
    return OpIndexing(maps)


def elementwise_maps(op: Op) -> OpIndexing:
    """Read every operand at the index of the result; scalars have no index."""
    output = shape_of(op.results[0])
    same_index, everywhere = op_maps.identity(output), op_maps.broadcast_to_output((), output, ())
    of_scalar = [bool(output) and not shape_of(value) for value in op.operands]
    return OpIndexing(
        [op_maps.scalar(output) if scalar else same_index for scalar in of_scalar],
        [everywhere if scalar else same_index for scalar in of_scalar],
    )


def bitcast_convert_maps(op: Op) -> OpIndexing | None:
    """Read the same index; of another width the word around a part, or all parts of a word, of whole bytes each."""
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    if output == shape:
        return elementwise_maps(op)
    source_bytes, target_bytes = whole_bytes(op.operands[0]), whole_bytes(op.results[0])
    if not source_bytes or not target_bytes or source_bytes * prod(shape) != target_bytes * prod(output):
        return None
    longer, shorter = (output, shape) if len(output) > len(shape) else (shape, output)
    around = [op_maps.broadcast(longer, range(len(shorter)), shorter)]
    parts = [op_maps.broadcast_to_output(shorter, longer, range(len(shorter)))]
    return OpIndexing(around, parts) if longer is output else OpIndexing(parts, around)


def whole_bytes(value: Value) -> int:
    """Return the bytes of an element that is a number of whole bytes; 0 for any other."""
    element_type = value.type.element_type if isinstance(value.type, TensorType) else "i1"
    bits = (
        0 if element_type in ("i1", "index") or element_type.startswith("complex") else mlir_element_bits(element_type)
    )
    return 0 if not bits or bits % 8 else bits // 8
