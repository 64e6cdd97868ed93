"""Batch normalizations, which XLA expands.

As in XLA's batchnorm_expander.cc, after its simplifications.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from shardy_py.ir.graph.program import Op
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork
from shardy_py.values import frozen


@frozen
class BatchNormCost(CostOpInterface):
    """A batch normalization.

    Args:
        per_element: The operations per element of the large tensor.
        per_feature: Those per feature; beside them there is the inverse of a root.
        reads: Operand number to how often it is read, of those that are read more than once.
    """

    per_element: float
    per_feature: float
    reads: Mapping[int, float]

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the work of the expansion."""
        elements, features = prod(shapes.operands[0]), prod(shapes.operands[1])
        flops = self.per_element * elements + self.per_feature * features
        return OpWork(flops, float(features), {number: count * elements for number, count in self.reads.items()})


COSTS: Mapping[str, CostOpInterface] = {
    "batch_norm_inference": BatchNormCost(2.0, 4.0, {}),
    "batch_norm_training": BatchNormCost(7.0, 5.0, {0: 3.0}),
    "batch_norm_grad": BatchNormCost(11.0, 4.0, {0: 3.0, 4: 2.0}),
}
"""As the CPU compiler of jaxlib 0.10.2 counts on programs of one op."""
