"""Which values share memory, and where temporary ones lie."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.cost.estimates.buffers import Ticks, ValueBuffer, heap_bytes, ticks_between
from shardy_py.cost.session import Session


@given(st.tuples(*[st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4)), max_size=6)] * 2))
def test_ticks_are_sets_of_times(spans):
    """The union has the times of both, in runs that do not touch; the common runs are those of both."""
    first, second = (
        reduce(Ticks.__or__, (ticks_between(at, at + more) for at, more in item), Ticks()) for item in spans
    )
    runs = (first | second).runs
    assert _times(runs) == _times(first.runs) | _times(second.runs)
    assert all(stop + 1 < start for (_, stop), (start, _) in pairwise(runs))
    assert _times(first.common_runs(second)) == _times(first.runs) & _times(second.runs)
    assert first.mask() == sum(1 << time for time in _times(first.runs))


_SPANS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), min_size=1, max_size=3)


@given(st.lists(st.tuples(st.integers(1, 6), _SPANS, st.booleans()), max_size=12))
def test_the_heap_is_what_lies_in_no_result(described):
    """The largest values first, each lies in the smallest result that is as large and free at all of its times."""
    buffers = [
        ValueBuffer(size, reduce(Ticks.__or__, (ticks_between(at, at + more) for at, more in spans)), is_result=result)
        for size, spans, result in described
    ]
    places = [[item.bytes, _times(item.ticks.runs)] for item in buffers if item.is_result]
    places.sort(key=lambda place: place[0])
    expected = [0] * 20
    for item in sorted((item for item in buffers if not item.is_result), key=lambda item: -item.bytes):
        times = _times(item.ticks.runs)
        place = next((place for place in places if place[0] >= item.bytes and not place[1] & times), None)
        if place is not None:
            place[1] |= times
        else:
            expected = [held + (item.bytes if time in times else 0) for time, held in enumerate(expected)]
    assert heap_bytes(buffers, 20, reserves_results=True) == expected


def _times(runs):
    return {time for start, stop in runs for time in range(start, stop + 1)}


def _buffers():
    """A result of 10 bytes at the end, and values of 10 and 8 bytes that are there one after the other before."""
    return (
        ValueBuffer(10, ticks_between(3, 3), is_result=True),
        ValueBuffer(10, ticks_between(0, 1)),
        ValueBuffer(8, ticks_between(1, 2)),
    )


def test_temporary_values_lie_in_the_memory_of_results_that_are_not_there_yet():
    """The larger one takes the place of the result, where the smaller one no longer fits at time 1."""
    assert heap_bytes(_buffers(), 4, reserves_results=True) == [0, 8, 8, 0]


def test_results_lie_in_the_heap_where_they_have_no_memory_of_their_own():
    """All three count while they are there."""
    assert heap_bytes(_buffers(), 4, reserves_results=False) == [10, 18, 8, 10]


def test_the_memory_of_a_donated_argument_is_used_between_its_last_use_and_the_result():
    """The argument is there until time 1, the result from 4 on."""
    argument = ValueBuffer(10, ticks_between(0, 1) | ticks_between(4, 4), is_argument=True, is_result=True)
    between, during = ValueBuffer(9, ticks_between(2, 3)), ValueBuffer(9, ticks_between(1, 2))
    assert heap_bytes((argument, between), 5, reserves_results=True) == [0] * 5
    assert heap_bytes((argument, during), 5, reserves_results=True) == [0, 9, 9, 0, 0]


def _peak(lines, arguments="%x: TYPE", result="TYPE", profile="xla-gpu"):
    text = f"func.func @main({arguments}) -> {result} {{\n{lines}\n}}".replace("TYPE", "tensor<8x8xf32>")
    return Session.open(text).evaluate(profile=profile, partitioner="xla").cost.peak_bytes.value


SIZE = 4 * 8 * 8
DOT = "{} = stablehlo.dot {}, %x : (TYPE, TYPE) -> TYPE\n"


def test_a_result_has_memory_from_the_start_by_the_profiles_of_xla():
    """The second of three products has memory besides the result, in which the first one lies."""
    lines = DOT.format("%a", "%x") + DOT.format("%b", "%a") + DOT.format("%c", "%b") + "return %c : TYPE"
    assert _peak(lines) == SIZE * 3
    small = lines.replace("return %c : TYPE", "%s = stablehlo.slice %c [0:1, 0:1] : (TYPE) -> tensor<1x1xf32>\n")
    small += "return %s : tensor<1x1xf32>"
    # The small result holds none of the products, of which two are there at a time.
    assert _peak(small, result="tensor<1x1xf32>") == SIZE * 3 + 4


CASE = """%r = "stablehlo.case"(%i) ({
  %a = stablehlo.dot %x, %x : (TYPE, TYPE) -> TYPE
  stablehlo.return %a : TYPE
}, {
  %b = stablehlo.dot %y, %x : (TYPE, TYPE) -> TYPE
  stablehlo.return %b : TYPE
}) : (tensor<i32>) -> TYPE
return %r : TYPE"""


@pytest.mark.parametrize("profile", ["none", "xla-gpu"])
def test_branches_write_where_the_result_of_the_conditional_lies(profile):
    """Two arguments, the index, and one result."""
    assert _peak(CASE, "%i: tensor<i32>, %x: TYPE, %y: TYPE", profile=profile) == SIZE * 3 + 4


@pytest.mark.parametrize(("op", "values"), [("stablehlo.negate %a", 1), ("stablehlo.reverse %a, dims = [0]", 2)])
def test_a_kernel_writes_over_its_operand_only_element_by_element(op, values):
    """The reversed product needs memory beside the product; the negated one takes its place."""
    lines = DOT.format("%a", "%x") + f"%b = {op} : TYPE\nreturn %b : TYPE"
    assert _peak(lines, profile="none") == SIZE * (1 + values)


CALL = """%r = stablehlo.custom_call @solve(%x) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
  result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (TYPE) -> TYPE
return %r : TYPE"""


def test_a_call_that_asks_for_another_layout_has_copies_in_it():
    """The copy of the operand becomes the result in that layout, as LAPACK's do."""
    assert _peak(CALL) == SIZE * 3
    assert _peak(CALL.replace("[0, 1]", "[1, 0]")) == SIZE * 2


def _peak_of(name: str, lines: str, arguments: str, result: str) -> float | None:
    text = f'sdy.mesh @mesh = <["a"={name}]>\nfunc.func @main({arguments}) -> {result} {{\n{lines}\n}}'
    return Session.open(text).evaluate(profile="xla-cpu", partitioner="xla").cost.peak_bytes.value


def test_windows_over_what_is_gathered_read_a_slice_of_it():
    """The whole of 512 rows and the slice of 639 of them that a device reads lie beside argument and result."""
    window = """  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%x, %0) <{padding = dense<[[511, 0], [0, 0]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 512, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<512x256xf32>, tensor<f32>) -> tensor<512x256xf32>
  return %1 : tensor<512x256xf32>"""
    rows = 'tensor<512x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}'
    assert _peak_of("4", window, f"%x: {rows}", f"({rows})") == 4 * 256 * (128 + 128 + 512 + 639)


def test_a_slice_that_crosses_devices_is_joined_in_memory():
    """What comes in, the slice of the shard and both joined lie there, as does the slice that is sent before."""
    sharded = 'tensor<256x{}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"a"}}]>}}'
    lines = """  %0 = stablehlo.slice %x [0:256, 0:512] : (tensor<256x1024xf32>) -> tensor<256x512xf32>
  %1 = stablehlo.tanh %0 : tensor<256x512xf32>
  return %1 : tensor<256x512xf32>"""
    peak = _peak_of("2", lines, f"%x: {sharded.format(1024)}", f"({sharded.format(512)})")
    assert peak == 4 * 256 * (512 + 256 + 256 + 256 + 512)


SORT = """  %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) : (tensor<64xf32>) -> tensor<64xf32>"""
SCATTER = """  %c = stablehlo.constant dense<[[3], [5]]> : tensor<2x1xi32>
  %u = stablehlo.constant dense<1.0> : tensor<2xf32>
  %1 = "stablehlo.scatter"(%0, %c, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<64xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<64xf32>"""


@pytest.mark.parametrize("op", [SORT, SCATTER], ids=["sort", "scatter"])
def test_sorts_and_scatters_write_over_an_operand_that_nothing_else_needs(op):
    """The exponential is written over; where it is read once more, there are two values besides the argument."""
    ends = "\n  %3 = stablehlo.slice %1 [0:1] : (tensor<64xf32>) -> tensor<1xf32>\n"
    lines = f"  %0 = stablehlo.exponential %x : tensor<64xf32>\n{op}{ends}"
    alone = lines + "  return %3 : tensor<1xf32>"
    assert _peak_of("2", alone, "%x: tensor<64xf32>", "tensor<1xf32>") == 4 * (64 + 1 + 64)
    again = lines + "  %4 = stablehlo.add %0, %1 : tensor<64xf32>\n  return %3, %4 : tensor<1xf32>, tensor<64xf32>"
    # The sum is a result, in whose memory one of the two values lies.
    result = "(tensor<1xf32>, tensor<64xf32>)"
    assert _peak_of("2", again, "%x: tensor<64xf32>", result) == 4 * (64 + 1 + 64 + 64)
