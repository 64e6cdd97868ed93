"""Sharding rules of the usual kinds of ops: functions of an op, to be given as its rule or called by one.

    toy.op("toy.add", rule=sdy.rules.broadcast)

    @toy.op("toy.sum")
    def sum_(op):
        return sdy.rules.reduction(op, op.attributes["axis"])

An op is anything with operands and results whose types may have a shape. A helper whose conditions an op does not meet
raises `RuleError` with the shapes.
"""

from shardy_py.sharding.rules.contraction import contraction, reduction
from shardy_py.sharding.rules.equation import einsum
from shardy_py.sharding.rules.pointwise import along, broadcast, broadcast_to, concatenate, elementwise, generate
from shardy_py.sharding.rules.reshape import reshape, transpose

__all__ = [
    "along",
    "broadcast",
    "broadcast_to",
    "concatenate",
    "contraction",
    "einsum",
    "elementwise",
    "generate",
    "reduction",
    "reshape",
    "transpose",
]
