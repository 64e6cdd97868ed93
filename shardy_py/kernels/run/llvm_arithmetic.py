"""Arithmetic of the dialect ``llvm``: the same numbers as that of ``arith`` and ``math``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from shardy_py.kernels.run import casts, floats, integers
from shardy_py.kernels.run.frame import Handler

_SAME: Mapping[str, str] = MappingProxyType(
    {
        **{"add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "select": "arith.select"},
        **{"udiv": "arith.divui", "sdiv": "arith.divsi", "urem": "arith.remui", "srem": "arith.remsi"},
        **{"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"},
        **{"shl": "arith.shli", "lshr": "arith.shrui", "ashr": "arith.shrsi"},
        **{"trunc": "arith.trunci", "zext": "arith.extui", "sext": "arith.extsi", "icmp": "arith.cmpi"},
        **{"fadd": "arith.addf", "fsub": "arith.subf", "fmul": "arith.mulf", "fdiv": "arith.divf"},
        **{"frem": "arith.remf", "fneg": "arith.negf", "fcmp": "arith.cmpf"},
        **{"sitofp": "arith.sitofp", "fpext": "arith.extf", "fptrunc": "arith.truncf", "bitcast": "arith.bitcast"},
        **{"intr.fabs": "math.absf", "intr.ceil": "math.ceil", "intr.floor": "math.floor", "intr.sqrt": "math.sqrt"},
        **{"intr.exp": "math.exp", "intr.exp2": "math.exp2", "intr.log": "math.log", "intr.log2": "math.log2"},
        **{"intr.sin": "math.sin", "intr.cos": "math.cos", "intr.pow": "math.powf", "intr.fma": "math.fma"},
        **{"intr.copysign": "math.copysign", "intr.maxnum": "arith.maxnumf", "intr.minnum": "arith.minnumf"},
    }
)

HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        f"llvm.{name}": next(family.HANDLERS[same] for family in (integers, casts, floats) if same in family.HANDLERS)
        for name, same in _SAME.items()
    }
)
