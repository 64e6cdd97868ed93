"""The operations of convolutions, whose rules have two factors for space, or no sum over groups."""

from __future__ import annotations

from math import prod

from shardy_dialects.onnx.tied_dims import operand_at, out_shape, shape_of
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import CostOpInterface
from shardy_py.values import frozen


@frozen
class OnnxConvolutionCost(CostOpInterface):
    """The cost of a convolution.

    Args:
        weight: The input of the node that holds the kernels.
        is_transposed: Whether each element of the operand, not of the result, is multiplied by a kernel.
    """

    weight: int = 1
    is_transposed: bool = False

    def get_flops(self, op: Op) -> float | None:
        """Return two operations for each product; padding counts, too."""
        kernel = shape_of(op, operand_at(op, self.weight))[1:]
        elements = shape_of(op) if self.is_transposed else out_shape(op)
        return 2.0 * prod(size or 1 for size in (*elements, *kernel))
