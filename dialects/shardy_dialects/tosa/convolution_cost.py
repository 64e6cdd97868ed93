"""The operations of convolutions that do not follow from their rules, which have no sum or two factors for space."""

from __future__ import annotations

from math import prod

from shardy_py.ir.graph.program import Op
from shardy_py.plugins import CostOpInterface
from shardy_py.sharding.rule_builder import tensor_shape


class DepthwiseCost(CostOpInterface):
    """The cost of a convolution of each channel by itself."""

    def get_flops(self, op: Op) -> float | None:
        """Return two operations for each product; padding counts, too."""
        return 2.0 * prod((*tensor_shape(op.results[0]), *tensor_shape(op.operands[1])[:2]))


class TransposedCost(CostOpInterface):
    """The cost of a transposed convolution, of which each element of the image is multiplied by a kernel."""

    def get_flops(self, op: Op) -> float | None:
        """Return two operations for each product."""
        return 2.0 * prod((*tensor_shape(op.operands[0]), *tensor_shape(op.operands[1])[:3]))
