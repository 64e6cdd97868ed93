"""Calls of operators whose numbers are random or left open."""

from __future__ import annotations

from tests.torch.rule_tensors import SOFT, Arguments, X, Y, given

UNKNOWN: dict[str, Arguments] = {
    **dict.fromkeys(("empty_like.default", "rand_like.default", "randn_like.default"), given(X)),
    **{"randint_like.default": given(X, 90), "randint_like.low_dtype": given(X, 3, 90)},
    **{"bernoulli.default": given(SOFT), "bernoulli.p": given(X, 0.3), "multinomial.default": given(SOFT[0], 2)},
    **{"normal_functional.default": given(X), "random.default": given(X)},
    **{"random.from": given(X, 3, 90), "random.to": given(X, 90)},
    **dict.fromkeys(("uniform.default", "exponential.default", "cauchy.default", "log_normal.default"), given(X)),
    **{"geometric.default": given(X, 0.3), "rrelu.default": given(X, training=True)},
    **dict.fromkeys(("poisson.default", "_standard_gamma.default"), given(SOFT)),
    **dict.fromkeys(("binomial.default", "normal.Tensor_Tensor"), given(SOFT, SOFT)),
    **{"normal.Tensor_float": given(X, 2.0), "normal.float_Tensor": given(2.0, SOFT)},
    "rrelu_with_noise_functional.default": given(X, Y, training=True),
    **{"new_empty.default": given(X, [6, 10]), "new_empty_strided.default": given(X, [6, 10], [10, 1])},
}
"""The arguments by the name of the overload."""
