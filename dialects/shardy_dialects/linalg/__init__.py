"""Linear algebra on tensors without StableHLO: the dialects linalg, arith, math, tensor and scf of MLIR and xDSL.

No rule of linalg is written by hand: all come from the indexing maps of its ops. Arith and math are elementwise, scf
has loops and branches.
"""

from shardy_dialects.linalg import control_flow, packing, structured, tensors, windows
from shardy_dialects.linalg.dynamic_sizes import SIZES
from shardy_dialects.linalg.tensors import localize_constant
from shardy_py.plugins import ConstantLike, Dialect, Elementwise, Pure, hookimpl
from shardy_py.sharding.rule_builder import pointwise_rule

ARITH = (
    *("addf", "addi", "andi", "bitcast", "ceildivsi", "ceildivui", "cmpf", "cmpi", "divf", "divsi", "divui", "extf"),
    *("extsi", "extui", "floordivsi", "fptosi", "fptoui", "index_cast", "maximumf", "maxnumf", "maxsi", "maxui"),
    *("minimumf", "minnumf", "minsi", "minui", "mulf", "muli", "negf", "ori", "remf", "remsi", "remui", "select"),
    *("shli", "shrsi", "shrui", "sitofp", "subf", "subi", "truncf", "trunci", "uitofp", "xori"),
)
MATH = (
    *("absf", "absi", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos"),
    *("cosh", "ctlz", "ctpop", "cttz", "erf", "erfc", "exp", "exp2", "expm1", "floor", "fma", "fpowi", "ipowi", "log"),
    *("log10", "log1p", "log2", "powf", "round", "roundeven", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)

arith = Dialect("arith")
arith.op("arith.constant", traits=[ConstantLike, Pure], local=localize_constant, sizes=SIZES["arith.constant"])
for _name in ARITH:
    arith.op(f"arith.{_name}", traits=[Elementwise, Pure], rule=pointwise_rule, sizes=SIZES.get(f"arith.{_name}"))

math = Dialect("math")
for _name in MATH:
    math.op(f"math.{_name}", traits=[Elementwise, Pure], rule=pointwise_rule)

linalg = Dialect("linalg")
structured.register(linalg)
windows.register(linalg)
packing.register(linalg)

tensor = Dialect("tensor")
tensors.register(tensor)
packing.register(tensor)

scf = Dialect("scf")
control_flow.register(scf)


@hookimpl
def shardy_register_dialects() -> list[Dialect]:
    """Return the dialects linalg, arith, math, tensor and scf."""
    return [linalg, arith, math, tensor, scf]
