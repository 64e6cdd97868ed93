"""Operators that compute each element by itself, and that PyTorch does not tag as pointwise everywhere."""

from __future__ import annotations

from shardy_dialects.aten.arguments import Rule, operand_shape
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import rules
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder

_SPECIAL = (
    *("digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln", "i0", "log1p"),
    *("logit", "multigammaln", "ndtr", "polygamma", "psi", "round", "sinc", "xlogy"),
)
_COMPARISONS = ("greater", "greater_equal", "less", "less_equal", "not_equal", "multiply", "subtract", "divide")
_POINTWISE = (
    *("clone.default", "alias.default", "alias_copy.default", "detach.default", "detach_copy.default"),
    *("contiguous.default", "_to_copy.default", "to.dtype", "to.dtype_layout", "lift_fresh_copy.default"),
    *("lift_fresh.default", "positive.default", "conj.default", "real.default", "imag.default", "complex.default"),
    *("expand_as.default", "_conj_copy.default", "resolve_conj.default", "fill.Scalar", "fill.Tensor"),
    *("native_dropout_backward.default", "threshold_backward.default", "__and__.Tensor", "__or__.Tensor"),
    *("__xor__.Tensor", "__lshift__.Tensor", "__rshift__.Tensor", "__and__.Scalar", "__or__.Scalar"),
    *("__xor__.Scalar", "__lshift__.Scalar", "__rshift__.Scalar", "float_power.Tensor_Scalar", "copy.default"),
    *("floor_divide.default", "floor_divide.Scalar", "rsub.Scalar", "rsub.Tensor", "where.self", "where.ScalarOther"),
    *("where.ScalarSelf", "where.Scalar", "masked_fill.Scalar", "masked_fill.Tensor"),
    *("_prelu_kernel.default", "polar.default", "broadcast_tensors.default", "isclose.default"),
    *("hardswish.default", "log_sigmoid.default", "_conj.default", "_add_relu.Tensor", "_add_relu.Scalar"),
    *("_standard_gamma_grad.default", "_dirichlet_grad.default", "_masked_scale.default", "lift.default"),
    *("_neg_view.default", "_neg_view_copy.default", "isin.Tensor_Scalar"),
)
"""Ops whose tensors have one shape, or broadcast to it."""
_ALIASES = (
    *("absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "fix", "negative"),
    *(f"special_{name}" for name in _SPECIAL),
)
"""Other names of tagged ops, which an export keeps as they are."""
ELEMENTS = (
    *_POINTWISE,
    *(f"{name}.default" for name in _ALIASES),
    *(f"{name}.{overload}" for name in _COMPARISONS for overload in ("Scalar", "Tensor")),
    *("divide.Scalar_mode", "divide.Tensor_mode", "true_divide.Scalar", "special_xlogy.other_scalar"),
    "special_xlogy.self_scalar",
)
_OF_ANOTHER = ("type_as.default", "to.other")


def _first(op: Op) -> Rule:
    """Return the rule of ops that take nothing but the type from their second operand."""
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(operand_shape(op, 0)):
        builder.tie({0: dim}, {0: dim}, size)
    return builder.build()


def register(aten: Dialect) -> None:
    """Define the ops."""
    for rule, names in ((rules.broadcast, ELEMENTS), (_first, _OF_ANOTHER)):
        for name in names:
            aten.op(f"aten.{name}", traits=[Pure], rule=rule)
