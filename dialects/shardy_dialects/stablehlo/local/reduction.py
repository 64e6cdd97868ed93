"""The local form of a reduction: the initial value counts on one of the devices whose partial results combine."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from shardy_dialects.stablehlo.computations import region_combiner
from shardy_py.ir.attributes import RawAttribute
from shardy_py.ir.graph import Op, Value
from shardy_py.ir.local import Shard
from shardy_py.ir.types import tensor
from shardy_py.sharding.combiner import Combiner

NEUTRAL = {Combiner.ADD: 0, Combiner.MUL: 1}
"""The neutral values of the combiners for which it matters how often a value counts."""
_WORDS = {"false": 0, "true": 1}


def localize_reduce(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the reduction of the shards, from neutral values on all but the first of them."""
    shard.check_kinds()
    neutral = NEUTRAL.get(region_combiner(op) or Combiner.MAX)
    is_first = _first_positions(op, shard)
    if neutral is None or all(is_first):
        return shard.copy()
    count = len(op.results)
    operands = list(shard.operands)
    for number in range(count, 2 * count):
        if splat_of(op.operands[number]) != neutral:
            operands[number] = _only_on_first(shard, operands[number], neutral, is_first)
    return evolve(shard, operands=operands).copy()


def _first_positions(op: Op, shard: Shard) -> list[int]:
    """Return 1 for each device that has the first part along all reduced dimensions, and 0 for the others."""
    sharding = shard.operand_shardings[0]
    cut = [dim for dim in op.attributes["dimensions"] if shard.parts(sharding, dim) > 1]
    if sharding is None or not cut:
        return [1]
    columns = zip(*(shard.positions(sharding, dim) for dim in cut), strict=True)
    return [int(not any(positions)) for positions in columns]


def _only_on_first(shard: Shard, value: Value, neutral: int, is_first: Sequence[int]) -> Value:
    """Return a scalar on the first device, and the neutral value on the others."""
    emit = shard.emit
    element = getattr(value.type, "element_type", "")
    literal = str(bool(neutral)).lower() if element == "i1" else f"{neutral}.0" if "f" in element else str(neutral)
    if element.startswith("complex"):
        literal = f"({neutral}.0, 0.0)"
    attributes = {"value": RawAttribute(f"dense<{literal}> : {value.type}")}
    other = emit.op("stablehlo.constant", (), [value.type], attributes).result
    flag = shard.ops.offset(emit, is_first)
    chosen = emit.op("stablehlo.convert", [flag], [tensor(dtype="i1")]).result
    return emit.op("stablehlo.select", [chosen, value, other], [value.type]).result


def splat_of(value: Value) -> float | None:
    """Return the number that a constant scalar holds, or None."""
    made = value.defining_op
    if made is None or not made.name.endswith(".constant") or "value" not in made.attributes:
        return None
    text = str(made.attributes["value"]).removeprefix("dense<").partition("> :")[0]
    try:
        return _WORDS[text] if text in _WORDS else float(text)
    except ValueError:
        return None


FORMS = {"stablehlo.reduce": localize_reduce}
