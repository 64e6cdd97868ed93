"""Calls of operators whose numbers are random or left open, or are of types that numpy does not have."""

from __future__ import annotations

import torch

from tests.torch.further_calls import UNCHECKED
from tests.torch.rule_tensors import SOFT, Arguments, X, Y, floats, given

UNKNOWN: dict[str, Arguments] = {
    **UNCHECKED,
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
    "_scaled_mm.default": given(
        *(floats(16, 32).to(torch.float8_e4m3fn), floats(16, 32).to(torch.float8_e4m3fn).t()),
        *(torch.ones(16, 1), torch.ones(1, 16)),
        out_dtype=torch.bfloat16,
    ),
    **{"new_empty.default": given(X, [6, 10]), "new_empty_strided.default": given(X, [6, 10], [10, 1])},
}
"""The arguments by the name of the overload."""
