"""Operands in which ops of StableHLO take partial results, so that their result is partial, too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from shardy_dialects.stablehlo.regions import region_combiner
from shardy_dialects.stablehlo.splats import splat_of
from shardy_py.ir.graph.program import Op
from shardy_py.sharding.combiner import Combiner

_Groups = Sequence[Collection[int]]
_BOTH, _EACH, _FIRST = ((0, 1),), ((0,), (1,)), ((0,),)
_MOVING: Mapping[str, _Groups] = dict.fromkeys(
    (f"stablehlo.{name}" for name in ("broadcast_in_dim", "reshape", "reverse", "slice", "transpose")), _FIRST
)
"""Ops that move elements, which is the same before and after they are combined."""
_DISTRIBUTING: Mapping[Combiner, Mapping[str, _Groups]] = {
    Combiner.ADD: {
        **_MOVING,
        **dict.fromkeys(("stablehlo.add", "stablehlo.subtract"), _BOTH),
        **dict.fromkeys((f"stablehlo.{name}" for name in ("convolution", "dot", "dot_general", "multiply")), _EACH),
        **dict.fromkeys(("stablehlo.divide", "stablehlo.dynamic_slice", "stablehlo.negate"), _FIRST),
    },
    Combiner.MAX: {**_MOVING, "stablehlo.maximum": _BOTH},
    Combiner.MIN: {**_MOVING, "stablehlo.minimum": _BOTH},
}


def partial_operands(op: Op, combiner: Combiner) -> _Groups:
    """Return the groups of operands in which an op may take partial results of a combiner."""
    if op.name == "stablehlo.divide" and not _is_exact(op):
        return ()
    if op.name == "stablehlo.reduce":
        is_sum = combiner is Combiner.ADD and len(op.results) == 1 and region_combiner(op) is Combiner.ADD
        return _FIRST if is_sum and splat_of(op.operands[1]) == 0 else ()
    return _DISTRIBUTING.get(combiner, {}).get(op.name, ())


def _is_exact(op: Op) -> bool:
    """Return whether a quotient is not rounded to an integer."""
    return "i" not in getattr(op.results[0].type, "element_type", "i")
