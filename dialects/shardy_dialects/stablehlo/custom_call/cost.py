"""Costs of custom calls.

As in XLA's hlo_cost_analysis.cc::HandleCustomCall.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import prod

from shardy_dialects.stablehlo.attributes import text_of
from shardy_dialects.stablehlo.costs import element_bytes
from shardy_dialects.stablehlo.custom_call import APPROXIMATE_TOP_K
from shardy_dialects.stablehlo.decompositions.cost import (
    LoopWork,
    _work,
    eigenvectors,
    householder_product,
    householder_vectors,
)
from shardy_dialects.stablehlo.sort import SortCost
from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork


class CustomCallCost(CostOpInterface):
    """A call of a library, whose operations XLA does not count, or of what XLA expands."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the operations of a decomposition or, for an approximate top-k, of a sort; none for others."""
        if text_of(op, "call_target_name") == APPROXIMATE_TOP_K:
            return SortCost().get_work(op, shapes)
        return call_work(op, shapes) or OpWork(temporary_bytes=_copied_bytes(op, shapes))

    def is_repeated(self, op: Op) -> bool:
        """Return whether the call is one of LAPACK: jaxlib 0.10.2 keeps equal ones apart."""
        return text_of(op, "call_target_name").startswith("lapack_")


def _copied_bytes(op: Op, shapes: OpShapes) -> int:
    """Return the bytes of operands and results in the layouts that a call asks for, where XLA uses others.

    A result in the place of an operand, as those of LAPACK are, needs no memory besides.
    """
    operand_layouts = op.attributes.get("operand_layouts") or ()
    result_layouts = op.attributes.get("result_layouts") or ()
    sides = ((op.operands, shapes.operands, operand_layouts), (op.results, shapes.results, result_layouts))
    operands, results = (
        [
            prod(shape) * element_bytes(value)
            for value, shape, layout in zip(values, value_shapes, layouts, strict=False)
            if not _is_row_major(layout)
        ]
        for values, value_shapes, layouts in sides
    )
    return sum(operands) + sum((Counter(results) - Counter(operands)).elements())


def _is_row_major(layout: object) -> bool:
    """Return whether a layout is the usual one, the last dimension minor."""
    return not isinstance(layout, DenseElements) or list(layout.values) == sorted(layout.values, reverse=True)


def _qr(op: Op, shapes: OpShapes) -> LoopWork:
    *batch, m, n = shapes.operands[0]
    return householder_vectors(prod(batch), m, n)


def _householder(op: Op, shapes: OpShapes) -> LoopWork:
    *batch, m, n = shapes.operands[0]
    return householder_product(prod(batch), m, n, shapes.operands[1][-1])


def _eigh(op: Op, shapes: OpShapes) -> LoopWork:
    *batch, n, _ = shapes.operands[0]
    # Whether only the lower half is read, whether eigenvalues are sorted, the most sweeps, and the tolerance.
    options = text_of(op, "backend_config").strip('"').split(",")
    return eigenvectors(prod(batch), n, is_sorted=options[1:2] == ["1"])


_CALLS: Mapping[str, Callable[[Op, OpShapes], LoopWork]] = {
    "Qr": _qr,
    "ProductOfElementaryHouseholderReflectors": _householder,
    "Eigh": _eigh,
}


def call_work(op: Op, shapes: OpShapes) -> OpWork | None:
    """Return the work of a custom call that XLA makes loops of; None for another one."""
    count = _CALLS.get(text_of(op, "call_target_name"))
    return None if count is None else _work(op, count(op, shapes))
