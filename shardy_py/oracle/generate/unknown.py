"""Features ``unknown_ops`` (an unregistered dialect) and ``ruleless_ops`` (known ops without a sharding rule)."""

from __future__ import annotations

from shardy_py.oracle.generate.program import BlockBuilder, GeneratedValue, ResultType, array, region_text


def unknown(block: BlockBuilder) -> None:
    """An op nobody knows, with any number of operands and results."""
    operands = [block.value() for _ in range(block.choices.integer(0, 3))]
    results: list[ResultType] = [(block.module.shape(), "f32") for _ in range(block.choices.integer(1, 2))]
    if operands and block.choices.chance(50):
        results[0] = (operands[0].shape, operands[0].dtype)
    attributes = {"note": '"text"'} if block.choices.chance(30) else {}
    if block.choices.chance(25):
        attributes["sdy.sharding"] = block.per_value([GeneratedValue("", *kind) for kind in results])
    block.op("test.unknown", operands, results, attributes, sharded="sdy.sharding" not in attributes)


def chlo(block: BlockBuilder) -> None:
    """A chlo op."""
    value = block.floats()
    block.op(block.choices.pick(("chlo.erf", "chlo.lgamma", "chlo.tan")), [value], [(value.shape, value.dtype)])


def batch_norm_training(block: BlockBuilder) -> None:
    """Batch normalisation for training."""
    value = block.tensor(block.module.shape(low=2))
    feature = block.choices.integer(0, value.rank - 1)
    vector: ResultType = ((value.dims[feature],), "f32")
    rest = [block.tensor(value.dims[feature : feature + 1]) for _ in range(2)]
    attributes = {"epsilon": "0.001 : f32", "feature_index": f"{feature} : i64"}
    block.op("stablehlo.batch_norm_training", [value, *rest], [(value.shape, "f32"), vector, vector], attributes)


def map_(block: BlockBuilder) -> None:
    """An element-wise function given as a region."""
    value = block.tensor(block.module.shape())
    inner, arguments = block.child([((), "f32")], isolated=True)
    result = inner.op("stablehlo.negate", arguments, [((), "f32")], sharded=False)
    region = region_text(inner, arguments, "stablehlo.return", result)
    block.op(
        "stablehlo.map", [value], [(value.shape, "f32")], {"dimensions": array(range(value.rank))}, regions=[region]
    )


EMITTERS = {
    "unknown_ops": ((2, unknown),),
    "ruleless_ops": ((1, chlo), (1, batch_norm_training), (1, map_)),
}
