"""Cost of a finished program on a machine: communication, computing, memory."""

from shardy_py.analysis.cost.estimate import estimate
from shardy_py.analysis.cost.values import Cost, KindCost, LineCost, OpCost, Quantity, Transfer

__all__ = ["Cost", "KindCost", "LineCost", "OpCost", "Quantity", "Transfer", "estimate"]
