"""Cost of a finished program on a machine: communication, computing, memory."""

from shardy_py.analysis.cost.estimate import estimate
from shardy_py.analysis.cost.values import Cost, KindCost, Quantity, Transfer

__all__ = ["Cost", "KindCost", "Quantity", "Transfer", "estimate"]
