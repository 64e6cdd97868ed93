"""Ops of which only the types change: their attributes name dimensions and hold no sizes."""

from __future__ import annotations

from shardy_dialects.stablehlo.elementwise import BINARY, UNARY
from shardy_py.ir.interfaces.local import local_by_types

_OTHERS = (
    "batch_norm_inference",
    "bitcast_convert",
    "broadcast_in_dim",
    "cholesky",
    "clamp",
    "compare",
    "complex",
    "dot",
    "dot_general",
    "fft",
    "optimization_barrier",
    "select",
    "transpose",
    "triangular_solve",
)

FORMS = {
    **{f"stablehlo.{name}": local_by_types for name in (*UNARY, *BINARY, *_OTHERS)},
    "chlo.ragged_dot": local_by_types,
}
