"""Features ``constants``, ``rng``: ops without tensor operands; ``sdy_constant`` uses Shardy's own constant too."""

from __future__ import annotations

from shardy_py.oracle.generate.program import BlockBuilder, array


def constant(block: BlockBuilder) -> None:
    """A splat constant."""
    block.filler(block.module.shape(), block.choices.pick(("f32", "f32", "i32", "bf16")))


def iota(block: BlockBuilder) -> None:
    """Counting along one dimension."""
    shape = block.module.shape(low=1)
    dim = block.choices.integer(0, len(shape) - 1)
    block.op("stablehlo.iota", [], [(shape, "f32")], {"iota_dimension": f"{dim} : i64"})


def constant_expression(block: BlockBuilder) -> None:
    """A broadcast scalar constant used twice, as frameworks make them."""
    scalar = block.filler((), "f32")
    shape = block.module.shape(low=1)
    full = block.op("stablehlo.broadcast_in_dim", [scalar], [(shape, "f32")], {"broadcast_dimensions": array([])})[0]
    for _ in range(2):
        block.op("stablehlo.add", [block.tensor(shape), full], [(shape, "f32")])


def constant_like(block: BlockBuilder) -> None:
    """A constant with the shape of another tensor, which MLIR folds."""
    value = block.floats()
    number = f"{block.choices.integer(0, 3)}.5 : {value.dtype}"
    block.op("chlo.constant_like", [value], [(value.shape, value.dtype)], {"value": number})


def rng_bit_generator(block: BlockBuilder) -> None:
    """Random bits and the next state."""
    state = block.tensor((2,), "ui64")
    block.op(
        "stablehlo.rng_bit_generator",
        [state],
        [((2,), "ui64"), (block.module.shape(low=1), "ui32")],
        {"rng_algorithm": f"#stablehlo<rng_algorithm {block.choices.pick(('DEFAULT', 'THREE_FRY', 'PHILOX'))}>"},
    )


EMITTERS = {
    "constants": ((2, constant), (1, iota), (1, constant_expression), (1, constant_like)),
    "rng": ((1, rng_bit_generator),),
}
