"""Ops that make tensors: constants, counters and random numbers."""

from __future__ import annotations

from shardy_dialects.aten.arguments import Rule, attribute, whole
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import ConstantLike, Dialect, Pure
from shardy_py.sharding import einsum, rules

CONSTANTS = (
    *("full.default", "zeros.default", "ones.default", "empty.memory_format", "arange.default", "arange.start"),
    *("arange.start_step", "linspace.default", "eye.default", "eye.m", "scalar_tensor.default", "tril_indices.default"),
    *("empty_strided.default", "empty_permuted.default", "triu_indices.default", "hann_window.default"),
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
)
"""Random ops that draw numbers as their operands say, so that each device needs all of these."""
_DROPOUTS = ("dropout.default", "native_dropout.default", "bernoulli.default")
NEW = ("new_zeros.default", "new_ones.default", "new_full.default", "new_empty.default", "new_empty_strided.default")


def _new(op: Op) -> Rule:
    """Return the rule of a constant that takes only its dtype from an operand: they are sharded apart."""
    return einsum.rule("...1 -> ...2", pass_through="...1")(op)


def _random_slopes(op: Op) -> Rule:
    """Return the rule of slopes below zero; how many random ones are drawn depends on the elements."""
    return whole(op) if attribute(op, "training", False) else rules.broadcast(op)


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
    for name in LIKE:
        aten.op(f"aten.{name}", traits=[Pure], rule=rules.broadcast)
    for name in NEW:
        aten.op(f"aten.{name}", traits=[Pure], rule=_new)
