"""Features ``custom_calls`` (known and unknown targets) and ``custom_rules`` (ops that bring their own rule)."""

from __future__ import annotations

from math import prod

from shardy_py.oracle.generate.program import FLOATS, BlockBuilder, GeneratedValue, ResultType

POINTWISE = (
    *("annotate_device_placement", "Cholesky", "CompactWyHelper", "InspectSharding", "LayoutConstraint", "mhlo.erf"),
    *("InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular", "MoveToDevice", "MoveToHost"),
    *("xla.megascale.provide_metadata", "_SPMDInternalOp_MultiPad", "_SPMDInternalOp_RotateRight"),
)
WITHOUT_RULE = ("sdy_testonly", "tpu_custom_call", "xla_ffi_python_cpu_callback", "foo", "bar")


def _call(
    block: BlockBuilder,
    target: str,
    operands: list[GeneratedValue],
    results: list[ResultType],
    extra: dict[str, str] | None = None,
) -> list[GeneratedValue]:
    attributes = {"call_target_name": f'"{target}"', **(extra or {})}
    return block.op("stablehlo.custom_call", operands, results, attributes)


def pointwise(block: BlockBuilder) -> None:
    """A target that keeps the shape."""
    value = block.floats()
    _call(block, block.choices.pick(POINTWISE), [value], [(value.shape, value.dtype)])


def without_rule(block: BlockBuilder) -> None:
    """A target nobody knows, or one known to have no rule; with one, two or no results."""
    value = block.floats()
    kind = block.choices.integer(0, 3)
    target = block.choices.pick(WITHOUT_RULE)
    if kind == 3:
        _call(block, target, [value], [], {"has_side_effect": "true"})
        return
    results: list[ResultType] = [(value.shape, value.dtype), (block.module.shape(), "f32")][: 2 if kind == 2 else 1]
    _call(block, target, [value], results, {"has_side_effect": "true"} if block.choices.chance(20) else {})


def decomposition(block: BlockBuilder) -> None:
    """Eigh, Qr and the products of their reflectors."""
    choices = block.choices
    batch = block.module.shape(low=0, high=2)
    rows, columns = (choices.pick(block.module.sizes) for _ in range(2))
    target = choices.pick(("Eigh", "Qr", "QrDecompositionBlock", "ProductOfElementaryHouseholderReflectors"))
    if target == "Eigh":
        columns = rows
    value = block.tensor((*batch, rows, columns))
    vector = (*batch, min(rows, columns))
    if target.startswith("Product"):
        _call(block, target, [value, block.tensor(vector)], [(value.shape, "f32")])
    else:
        _call(block, target, [value], [(value.shape, "f32"), (vector, "f32")])


def top_k(block: BlockBuilder) -> None:
    """The largest elements: exact and approximate."""
    choices = block.choices
    value = block.tensor(block.module.shape(low=1))
    dim = choices.integer(0, value.rank - 1)
    count = max(value.dims[dim] // choices.pick((1, 2, 4)), 1)
    if choices.chance(50):
        shape = (*value.dims[:-1], max(value.dims[-1] // 2, 1))
        extra = {"mhlo.attributes": f"{{k = {shape[-1]} : i64, largest = true}}", "mhlo.version": "1 : i64"}
        _call(block, "mhlo.topk", [value], [(shape, "f32"), (shape, "i32")], extra)
        return
    shape = tuple(count if index == dim else size for index, size in enumerate(value.dims))
    operands = [value, block.tensor(value.dims, "i32"), block.tensor(()), block.tensor((), "i32")]
    target = choices.pick(("ApproxTopK", "PartialReduce"))
    _call(block, target, operands, [(shape, "f32"), (shape, "i32")])


def x64(block: BlockBuilder) -> None:
    """64 bits from two halves, sometimes as the state of a random generator; and the halves again."""
    feeds_rng = block.choices.chance(40)
    shape = (2,) if feeds_rng else block.module.shape()
    low, high = (block.tensor(shape, "ui32") for _ in range(2))
    both = _call(block, "X64Combine", [low, high], [(shape, "ui64")])[0]
    if feeds_rng:
        attributes = {"rng_algorithm": "#stablehlo<rng_algorithm DEFAULT>"}
        results: list[ResultType] = [((2,), "ui64"), (block.module.shape(low=1), "ui32")]
        block.op("stablehlo.rng_bit_generator", [both], results, attributes)
    else:
        _call(block, block.choices.pick(("X64SplitHigh", "X64SplitLow")), [both], [(shape, "ui32")])


def _symbol(index: int) -> str:
    return "ijklmnopqrstuvwxyz"[index]


def custom_rule(block: BlockBuilder) -> None:
    """An op with a rule of its own over random factors: shared, compound, special and blocked ones."""
    choices = block.choices
    sizes = [choices.pick((2, 3, 4, 6, 8, 1)) for _ in range(choices.integer(1, 5))]
    order: list[int] = []

    def mapping() -> list[list[int]]:
        dims: list[list[int]] = []
        for factor in choices.shuffled(choices.some(range(len(sizes)), low=1, high=4)):
            if dims and sizes[factor] > 1 and sizes[dims[-1][0]] > 1 and choices.chance(25):
                dims[-1].append(factor)
            else:
                dims.append([factor])
        return dims

    tensors = [mapping() for _ in range(choices.integer(1, 3))], [mapping() for _ in range(choices.integer(1, 2))]
    for dims in [*tensors[0], *tensors[1]]:
        order += [factor for dim in dims for factor in dim if factor not in order]
    number = {factor: index for index, factor in enumerate(order)}
    in_results = {factor for dims in tensors[1] for dim in dims for factor in dim}
    kinds = {
        factor: choices.weighted(
            ((6, ""), (2, "reduction"), (1, "need_replication"), (1, "permutation"))
            if factor not in in_results
            else ((8, ""), (1, "need_replication"), (1, "permutation"))
        )
        for factor in order
    }
    shapes = [[tuple(prod(sizes[factor] for factor in dim) for dim in dims) for dims in side] for side in tensors]
    sides = [
        ", ".join(
            "[" + ", ".join("".join(_symbol(number[factor]) for factor in dim) for dim in dims) + "]" for dims in side
        )
        for side in tensors
    ]
    factors = ", ".join(f"{_symbol(index)}={sizes[factor]}" for index, factor in enumerate(order))
    special = "".join(
        f" {kind}={{{', '.join(_symbol(number[factor]) for factor in order if kinds[factor] == kind)}}}"
        for kind in ("reduction", "need_replication", "permutation")
        if kind in kinds.values()
    )
    blocked = [_symbol(number[factor]) for factor in order if choices.chance(10)]
    special += f" blocked_propagation={{{', '.join(blocked)}}}" if blocked else ""
    custom = ", custom" if choices.chance(50) else ""
    rule = f"#sdy.op_sharding_rule<({sides[0]})->({sides[1]}) {{{factors}}}{special}{custom}>"
    operands = [block.tensor(shape) for shape in shapes[0]]
    results: list[ResultType] = [(shape, "f32") for shape in shapes[1]]
    if custom or choices.chance(60) or not block.module.has("unknown_ops"):
        _call(block, "foo", operands, results, {"sdy.sharding_rule": rule})
    else:
        block.op("test.with_rule", operands, results, {"sdy.sharding_rule": rule})


def rule_on_op(block: BlockBuilder) -> None:
    """A known op whose own rule is overruled."""
    value = block.value(lambda item: item.dtype in FLOATS and item.rank == 2, low=2, high=2)
    first, second = value.dims
    rule = f"#sdy.op_sharding_rule<([i, j])->([i, k]) {{i={first}, j={second}, k={second}}}>"
    block.op("stablehlo.negate", [value], [(value.shape, value.dtype)], {"sdy.sharding_rule": rule})


EMITTERS = {
    "custom_calls": ((2, pointwise), (2, without_rule), (1, decomposition), (1, top_k), (1, x64)),
    "custom_rules": ((4, custom_rule), (1, rule_on_op)),
}
