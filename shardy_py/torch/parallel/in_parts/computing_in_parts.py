"""The pass that lets ops over a sharded dimension compute on its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from attrs import evolve

from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.torch.parallel.in_parts.attention import grouped_attention
from shardy_py.torch.parallel.in_parts.extremes import extreme_and_place, largest_few, place_of_extreme
from shardy_py.torch.parallel.in_parts.losses import class_loss, class_loss_gradient
from shardy_py.torch.parallel.in_parts.moments import layer_norm, layer_norm_gradient, variance, vector_norm
from shardy_py.torch.parallel.in_parts.softmax import (
    log_softmax,
    log_softmax_gradient,
    logsumexp,
    softmax,
    softmax_gradient,
)
from shardy_py.torch.parallel.in_parts.writer import OperatorWriter
from shardy_py.values import NoFields

Form = Callable[[OperatorWriter], Sequence[Value] | None]
"""Writes what stands in for an op, and returns its results; None where the op needs no other form."""


def _forms() -> Mapping[str, Form]:
    by_form: dict[Form, Sequence[str]] = {
        softmax: ("softmax.int", "_softmax.default", "_safe_softmax.default"),
        log_softmax: ("log_softmax.int", "_log_softmax.default"),
        logsumexp: ("logsumexp.default",),
        softmax_gradient: ("_softmax_backward_data.default",),
        log_softmax_gradient: ("_log_softmax_backward_data.default",),
        vector_norm: ("linalg_vector_norm.default", "norm.Scalar", "norm.ScalarOpt_dim"),
        variance: tuple(
            f"{name}.{overload}"
            for name in ("var", "std", "var_mean", "std_mean")
            for overload in ("default", "dim", "correction")
        ),
        layer_norm: ("layer_norm.default", "native_layer_norm.default", "rms_norm.default", "_fused_rms_norm.default"),
        layer_norm_gradient: ("native_layer_norm_backward.default",),
        place_of_extreme: ("argmax.default", "argmin.default"),
        extreme_and_place: ("max.dim", "min.dim"),
        largest_few: ("topk.default",),
        class_loss: (
            "nll_loss.default",
            "nll_loss_nd.default",
            "nll_loss_forward.default",
            "nll_loss2d_forward.default",
        ),
        class_loss_gradient: ("nll_loss_backward.default", "nll_loss2d_backward.default"),
        grouped_attention: ("scaled_dot_product_attention.default",),
    }
    return {f"aten.{name}": form for form, names in by_form.items() for name in names}


FORMS = _forms()
"""The forms by the name of the op."""


class ComputeInPartsPass(NoFields):
    """Let ops over a sharded dimension compute on its parts, and combine numbers for each row.

    Their fused operators need whole rows. Where rows are not sharded, these stay.
    """

    name: ClassVar[str] = "compute-in-parts"

    def run(self, program: Program, context: PassContext) -> None:
        """Write the ops anew whose rows are sharded."""
        names: dict[int, str] = dict(program.origin.node_names)
        known_totals: dict[int, tuple[int, Value]] = {}
        for op in list(all_ops(program)):
            form = FORMS.get(op.name)
            if form is None or not any(value.id in program.shardings for value in (*op.operands, *op.results)):
                continue
            write = OperatorWriter(program, op, names, known_totals)
            results = form(write)
            if results is not None:
                write.replace(results)
        program.origin = evolve(program.origin, node_names=names)
