"""The order in which kernels run for a backend, and what is in memory meanwhile."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.cost.session import Session

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=4]>\n'
SIZE = 4 * 8 * 8
TYPE = "tensor<8x8xf32>"


def _cost(lines, profile="xla-cpu", *, arguments="%x: TYPE"):
    body = f"func.func @main({arguments}) -> TYPE {{\n  {lines}\n}}"
    return Session.open(MESH + body.replace("TYPE", TYPE)).evaluate(profile=profile, partitioner="xla").cost


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
    body = "".join(_dot(f"%{name}", "%x", f"%{other}") for name, other in zip("abc", "xab", strict=True))
    reduced = "".join(_sum(f"%r{name}", f"%{name}") for name in "abc")
    lines = body + reduced + _dot("%p", "%ra", "%rb") + _dot("%q", "%p", "%rc") + "return %q : TYPE"
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


LOOP = """%zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %a = %x, %b = %y) : tensor<i32>, TYPE, TYPE
  cond {
    %n = stablehlo.constant dense<5> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    BODY
  }
  return %r#1 : TYPE"""
SUM = "%s = stablehlo.add %a, %b : TYPE\n    "
BOTH = SUM + "%d = stablehlo.subtract %a, %b : TYPE\n    stablehlo.return %j, %s, %d : tensor<i32>, TYPE, TYPE"
MOVED = SUM + "stablehlo.return %j, %s, %a : tensor<i32>, TYPE, TYPE"
ALONE = SUM + "stablehlo.return %j, %s, %b : tensor<i32>, TYPE, TYPE"


@pytest.mark.parametrize(
    ("body", "copies", "held"),
    [
        # The sum lies where %a was.
        (ALONE, 0, 0),
        # The sum and the difference read both old values, of which there are copies.
        (BOTH, 2, 2),
        # The old values are copied, as the sum lies where %a was; the copy of %a is copied to where %b was.
        (MOVED, 3, 2),
    ],
)
def test_what_a_loop_carries_is_copied_where_its_next_value_takes_its_place_too_early(body, copies, held):
    """A copy is read and written in each of five iterations, besides what the loop starts with and its sums."""
    lines, arguments = LOOP.replace("BODY", body), "%x: TYPE, %y: TYPE"
    copied, plain = (_cost(lines, name, arguments=arguments) for name in ("xla-cpu", "xla-gpu"))
    started = 2 if body == ALONE else 4
    assert copied.memory_traffic_bytes.value - plain.memory_traffic_bytes.value == SIZE * (started + 5 * 2 * copies)
    carried = 1 if body == ALONE else 2
    counter, compared = 4, 0 if held else 1
    assert copied.peak_bytes.value == SIZE * (2 + carried + held) + counter + compared
