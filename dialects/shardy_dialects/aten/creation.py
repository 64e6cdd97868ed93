"""Ops that make tensors: constants, counters and random numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardy_dialects.aten.arguments import Rule, attribute, sized, whole
from shardy_dialects.aten.local_ops import aten
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import Localize, Shard, local_by_types
from shardy_py.plugins import ConstantLike, Dialect, Pure
from shardy_py.sharding import einsum, rules

CONSTANTS = (
    *("full.default", "zeros.default", "ones.default", "empty.memory_format", "arange.default", "arange.start"),
    *("arange.start_step", "linspace.default", "eye.default", "eye.m", "scalar_tensor.default", "tril_indices.default"),
    *("empty_strided.default", "empty_permuted.default", "triu_indices.default", "logspace.default"),
    *("range.default", "range.step", "fft_fftfreq.default", "fft_rfftfreq.default"),
    *(
        f"{name}_window.{kind}"
        for name in ("bartlett", "blackman", "hamming", "hann")
        for kind in ("default", "periodic")
    ),
    *("hamming_window.periodic_alpha", "hamming_window.periodic_alpha_beta"),
    *(f"kaiser_window.{kind}" for kind in ("default", "periodic", "beta")),
)


RANDOM = ("rand.default", "randn.default", "randint.default", "randint.low", "randperm.default", "normal.float_float")


LIKE = ("zeros_like.default", "ones_like.default", "full_like.default", "empty_like.default", "zero.default")


RANDOM_LIKE = (
    *("rand_like.default", "randn_like.default", "randint_like.default", "randint_like.low_dtype", "bernoulli.p"),
    *("uniform.default", "exponential.default", "cauchy.default", "geometric.default", "log_normal.default"),
    *("normal_functional.default", "random.default", "random.from", "random.to"),
)
"""Ops that take nothing but sizes and types from their operand."""


BY_ELEMENTS = (
    *("multinomial.default", "poisson.default", "binomial.default", "_standard_gamma.default"),
    *("normal.Tensor_Tensor", "normal.Tensor_float", "normal.float_Tensor", "rrelu_with_noise_functional.default"),
    *("bernoulli.Tensor", "_sample_dirichlet.default", "randint_like.Tensor"),
)
"""Random ops that draw numbers as their operands say, so that each device needs all of these."""


_DROPOUTS = ("dropout.default", "native_dropout.default", "bernoulli.default")


BETWEEN = tuple(
    f"{name}.{kind}"
    for name in ("linspace", "logspace")
    for kind in ("Scalar_Tensor", "Tensor_Scalar", "Tensor_Tensor")
)
"""Numbers between two of which one is an operand, or both."""


NEW = ("new_zeros.default", "new_ones.default", "new_full.default", "new_empty.default", "new_empty_strided.default")


def _new(op: Op) -> Rule:
    """Return the rule of a constant that takes only its dtype from an operand: they are sharded apart."""
    return einsum.rule("...1 -> ...2", pass_through="...1")(op)


def _random_slopes(op: Op) -> Rule:
    """Return the rule of slopes below zero; how many random ones are drawn depends on the elements."""
    return whole(op) if attribute(op, "training", False) else rules.broadcast(op)


_DRAWN_AS_FLOATS = ("bf16", "f16")
"""Element types of probabilities with which numbers of single precision are compared."""


def _localize_random(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the device's part of numbers that depend on no operand."""
    return _own_parts(op, shard, shard.operands)


def _localize_random_like(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the device's part of numbers for which an operand says the sizes."""
    order = attribute(op, "memory_order")
    if order is not None:
        return _own_parts(op, shard, [_laid(op, shard, order)])
    if _is_whole(shard):
        return local_by_types(op, shard)
    return _own_parts(op, shard, [_new_like(op, shard, "new_empty.default")])


def _localize_bernoulli(op: Op, shard: Shard) -> Sequence[Value]:
    """Return ones with the probabilities of an operand: where a number between 0 and 1 is below them."""
    if _is_whole(shard):
        return local_by_types(op, shard)
    chances, shape = shard.operands[0], shard.result_shape()
    full_tensor = _new_like(op, shard, "new_empty.default", is_single=True)
    drawn = aten(shard.emit, "rand_like.default", {"self": full_tensor}, full_tensor.shape)
    part = _own_part(shard, drawn, 0)
    names = {"operand_names": ("self", "other")}
    is_below = shard.emit.op("aten.gt.Tensor", [chances, part], [TensorType(shape, "i1")], names).result
    return [shard.emit.op("aten.type_as.default", [is_below, chances], [shard.result_type()], names).result]


def _localize_dropout(op: Op, shard: Shard) -> Sequence[Value]:
    """Return an operand with the device's part of the zeros and the factor that all of it would get."""
    if _is_whole(shard) or attribute(op, "train") is False:
        return local_by_types(op, shard)
    scaled_ones, *masks = _own_parts(op, shard, [_new_like(op, shard, "new_ones.default")])
    value = shard.operands[0]
    if not masks:
        return [aten(shard.emit, "mul.Tensor", {"self": value, "other": scaled_ones}, shard.result_shape())]
    chance = attribute(op, "p", 0.5)
    value = aten(shard.emit, "mul.Tensor", {"self": value, "other": masks[0]}, shard.result_shape())
    scale = 0.0 if chance == 1 else 1 / (1 - chance)
    return [aten(shard.emit, "mul.Scalar", {"self": value}, shard.result_shape(), other=scale), *masks]


def _is_whole(shard: Shard) -> bool:
    return not any(map(shard.sharded_dims, (*shard.operand_shardings, *shard.result_shardings)))


def _new_like(op: Op, shard: Shard, name: str, *, is_single: bool = False, order: Sequence[int] | None = None) -> Value:
    """Return a new tensor of the sizes of the whole first operand, and of its element type or of single precision.

    Args:
        op: The op.
        shard: The shard.
        name: The operator that makes it.
        is_single: Whether short numbers become those of single precision.
        order: The order of the dimensions, if it is another one.
    """
    type_ = op.operands[0].type
    shape = tuple(size or 0 for size in type_.shape) if isinstance(type_, TensorType) else ()
    shape = shape if order is None else tuple(shape[dim] for dim in order)
    like = {"self": shard.operands[0]}
    if not is_single or not isinstance(type_, TensorType) or type_.element_type not in _DRAWN_AS_FLOATS:
        return aten(shard.emit, name, like, shape, size=shape)
    attributes = {"operand_names": ("self",), "size": shape, "dtype": "torch.float32"}
    return shard.emit.op(f"aten.{name}", shard.operands[:1], [TensorType(shape, "f32")], attributes).result


def _laid(op: Op, shard: Shard, order: Sequence[int]) -> Value:
    """Return a new tensor of the sizes of the whole first operand, whose dimensions have an order in memory."""
    tensor = _new_like(op, shard, "new_empty.default", order=order)
    back = [order.index(dim) for dim in range(len(order))]
    shape = [tensor.shape[place] for place in back]
    return aten(shard.emit, "permute.default", {"self": tensor}, shape, dims=tuple(back))


def _own_parts(op: Op, shard: Shard, operands: Sequence[Value]) -> list[Value]:
    """Return the device's parts of the results that an op has for whole operands."""
    drawn = shard.emit.op_like(op, operands, [value.type for value in op.results])
    return [_own_part(shard, value, number) for number, value in enumerate(drawn.results)]


def _own_part(shard: Shard, value: Value, number: int) -> Value:
    sharding = shard.result_shardings[number]
    return value if sharding is None else shard.own_part(value, sharding)


def register(aten: Dialect) -> None:
    """Define the ops."""
    for name in CONSTANTS:
        aten.op(f"aten.{name}", traits=[ConstantLike, Pure])
    for name in RANDOM:
        aten.op(f"aten.{name}", rule=rules.generate)
    for name in _DROPOUTS:
        aten.op(f"aten.{name}", rule=rules.broadcast)
    for name in RANDOM_LIKE:
        aten.op(f"aten.{name}", rule=rules.broadcast)
    aten.op("aten.rrelu.default", rule=_random_slopes)
    for name in BY_ELEMENTS:
        aten.op(f"aten.{name}", rule=whole)
    for name in BETWEEN:
        aten.op(f"aten.{name}", traits=[Pure], rule=whole)
    for name in LIKE:
        aten.op(f"aten.{name}", traits=[Pure], rule=rules.broadcast)
    for name in NEW:
        aten.op(f"aten.{name}", traits=[Pure], rule=_new)


FORMS: Mapping[str, Localize] = {
    **dict.fromkeys(RANDOM, _localize_random),
    **dict.fromkeys(RANDOM_LIKE, _localize_random_like),
    "bernoulli.default": _localize_bernoulli,
    **dict.fromkeys(("dropout.default", "native_dropout.default"), _localize_dropout),
    **dict.fromkeys(NEW[:-1], sized("size")),
}
"""The local forms by the names of the overloads; those of all other ops change in their types only."""
