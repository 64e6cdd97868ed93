"""Scalar bodies of StableHLO's ops: what they compute for one element, for kernels.

Their modules are imported when a kernel is made, as most programs never are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shardy_py.plugins import OpDefinition

if TYPE_CHECKING:
    from shardy_py.ir.graph.program import Op
    from shardy_py.plugins import ElementBuilder, Scalar

HOMES = {
    "arithmetic": (
        "abs add and clamp compare divide maximum minimum multiply negate not or remainder select shift_left "
        "shift_right_arithmetic shift_right_logical sign subtract xor"
    ),
    "conversion": "bitcast bitcast_convert complex convert imag real reduce_precision",
    "functions": (
        "acos acosh asin asinh atan atan2 atanh cbrt ceil constant cosh cosine count_leading_zeros erf exponential "
        "exponential_minus_one floor iota is_finite is_inf is_neg_inf is_pos_inf log log_plus_one logistic popcnt "
        "power round_nearest_afz round_nearest_even rsqrt sine sinh sqrt square tan tanh"
    ),
    "movement": (
        "broadcast_in_dim concatenate copy dynamic_slice dynamic_update_slice gather pad reshape reverse slice "
        "transpose"
    ),
    "reductions": "dot dot_general map reduce reduce_window",
}
"""Module to the ops whose bodies it has, without the name of the dialect."""
_HOME_OF = {name: home for home, names in HOMES.items() for name in names.split()}


def describe(definition: OpDefinition) -> dict[str, Any]:
    """Return the scalar body of an op."""
    name = definition.name.partition(".")[2]
    return {"emission": partial(_emit, name)} if name in _HOME_OF else {}


def _emit(name: str, builder: ElementBuilder, op: Op) -> Scalar | Sequence[Scalar]:
    """Return one element of each result of an op."""
    found: Scalar | Sequence[Scalar] = import_module(f"{__name__}.{_HOME_OF[name]}").BODIES[name](builder, op)
    return found
