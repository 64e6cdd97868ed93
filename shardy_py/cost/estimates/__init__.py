"""Cost of a finished program on a machine: communication, computing, memory."""

from shardy_py.cost.estimates.estimate import estimate
from shardy_py.cost.estimates.values import Cost, KindCost, LineCost, OpCost, Quantity, Transfer

__all__ = ["Cost", "KindCost", "LineCost", "OpCost", "Quantity", "Transfer", "estimate"]
