"""Programs that XLA computes right on one device: reductions start from neutral values, and others combine behind them.

XLA counts initial values twice where it reduces the result of a dot product, and leaves them out where a single element
is reduced.
"""

from __future__ import annotations

from typing import Any

from shardy_dialects.stablehlo.local.literals import neutral_literal
from shardy_dialects.stablehlo.local.ops import COMBINING
from shardy_dialects.stablehlo.regions import region_combiner
from shardy_py.frontends.mlir import import_module, parse_module, print_module, write_back
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType, tensor


def with_plain_reductions(text: Any) -> str:
    """Return a module in which no reduction starts from anything but a neutral value."""
    program = import_module(parse_module(text))
    for op in list(program.walk()):
        combiner = region_combiner(op) if op.name == "stablehlo.reduce" else None
        for number, result in enumerate(op.results if combiner is not None else ()):
            initial = op.operands[len(op.results) + number]
            element = getattr(initial.type, "element_type", "")
            literal = neutral_literal(combiner, element) if combiner is not None else None
            if literal is None or op.parent is None or not isinstance(result.type, TensorType):
                continue
            scalar = tensor(dtype=element)
            value = {"value": RawAttribute(f"dense<{literal}> : {scalar}")}
            neutral = Op(program, "stablehlo.constant", (), [scalar], value)
            op.parent.insert_before(op, neutral)
            op.set_operand(len(op.results) + number, neutral.result)
            _combine(program, op, result, initial, COMBINING[combiner])
    return print_module(write_back(program))


def _combine(program: Program, op: Op, result: Value, initial: Value, name: str) -> None:
    """Put the combination of a result with a scalar in the place of the result."""
    dims = {"broadcast_dimensions": RawAttribute("array<i64>")}
    spread = Op(program, "stablehlo.broadcast_in_dim", [initial], [result.type], dims)
    combined = Op(program, name, [result, spread.result], [result.type])
    result.replace_all_uses_with(combined.result, except_op=combined)
    assert op.parent is not None
    op.parent.insert_after(op, combined)
    op.parent.insert_before(combined, spread)
