"""The order in which kernels run for a backend, and what is in memory meanwhile."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.analysis.session import Session

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=4]>\n'
SIZE = 4 * 8 * 8
TYPE = "tensor<8x8xf32>"


def _cost(lines, profile="xla-cpu", *, arguments="%x: TYPE"):
    body = f"func.func @main({arguments}) -> TYPE {{\n  {lines}\n}}"
    return Session.open(MESH + body.replace("TYPE", TYPE)).evaluate(profile=profile).cost


def _dot(name, left, right="%x"):
    return f"{name} = stablehlo.dot {left}, {right} : (TYPE, TYPE) -> TYPE\n  "


def _sum(name, operand):
    return f'{name} = sdy.all_reduce {{"b"}} {operand} out_sharding=<@mesh, [{{}}, {{}}]> : TYPE\n  '


def test_what_reads_arguments_alone_runs_at_the_start_where_the_backend_runs_breadth_first():
    """Products %a and %d read arguments; %d is in memory while %b is made of %a, not only behind %c."""
    chain = _dot("%a", "%x") + _dot("%b", "%a") + _dot("%c", "%b") + _dot("%d", "%y")
    lines = chain + "%e = stablehlo.add %c, %d : TYPE\n  return %e : TYPE"
    arguments = "%x: TYPE, %y: TYPE"
    assert _cost(lines, "none", arguments=arguments).peak_bytes.value == SIZE * (2 + 2)
    assert _cost(lines, "xla-cpu", arguments=arguments).peak_bytes.value == SIZE * (2 + 3)


def test_operands_and_results_of_all_reduces_that_become_one_are_in_memory_together():
    """Three sums at once: three operands and three results; one after the other, one operand less each time."""
    made = "".join(_dot(f"%{name}", "%x", f"%{other}") for name, other in zip("abc", "xab", strict=True))
    reduced = "".join(_sum(f"%r{name}", f"%{name}") for name in "abc")
    lines = made + reduced + _dot("%p", "%ra", "%rb") + _dot("%q", "%p", "%rc") + "return %q : TYPE"
    assert _cost(lines, "xla-cpu").peak_bytes.value == SIZE * (1 + 6)
    assert _cost(lines, "none").peak_bytes.value == SIZE * (1 + 4)


def test_an_all_reduce_that_needs_one_of_those_before_it_ends_what_becomes_one():
    """Of two chains of two, the second of the first and the first of the second are alike, as in XLA's combiner."""
    chains = "".join(
        _sum(f"%{name}1", f"%{name}") + _dot(f"%{name}2", f"%{name}1") + _sum(f"%{name}3", f"%{name}2")
        for name in ("y", "z")
    )
    lines = chains + _dot("%r", "%y3", "%z3") + "return %r : TYPE"
    cost = _cost(lines, arguments="%x: TYPE, %y: TYPE, %z: TYPE")
    assert [item.combined for item in cost.transfers] == [1, 2, 2, 1]
