"""The order of uses."""

from __future__ import annotations

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.graph.use_order import order_uses


def test_an_op_comes_before_those_in_its_regions() -> None:
    """Parsing enters the inner use first; in program order the op around it is first."""
    b = Builder()
    with b.function("main", [tensor(8)]) as (x,):
        with b.region_op("toy.loop", [x, x], [tensor(8)]) as loop, b.region(loop) as ():
            inner = b.emit("toy.op", [x], [tensor(8)])
        last = b.return_(x)
    assert x.uses == [(inner, 0), (loop, 0), (loop, 1), (last, 0)]
    order_uses(b.program)
    assert x.uses == [(loop, 0), (loop, 1), (inner, 0), (last, 0)]
