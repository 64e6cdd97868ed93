"""XLA's figures, read from the text of HLO modules."""

from __future__ import annotations

from shardy_py.jax.figures.collectives import group_size, list_collectives
from shardy_py.jax.figures.hlo_text import parse_computations
from shardy_py.jax.figures.loops import LoopWeights, runs_of
from shardy_py.jax.figures.measure import custom_calls

MODULE = """HloModule m

%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8]{0} get-tuple-element(%p), index=1
  %r = f32[8]{0} all-reduce(%x), replica_groups={{0,1},{2,3}}, to_apply=%add
  ROOT %t = (s32[], f32[8]{0}) tuple(%i, %r)
}

%condition (q: (s32[], f32[8])) -> pred[] {
  %q = (s32[], f32[8]{0}) parameter(0)
  ROOT %c = pred[] constant(true)
}

ENTRY %main (a: (s32[], f32[8])) -> (s32[], f32[8]) {
  %a = (s32[], f32[8]{0}) parameter(0)
  ROOT %w = (s32[], f32[8]{0}) while(%a), condition=%condition, body=%body, config={"known_trip_count":{"n":"5"}}
}
"""
COMPUTATIONS = parse_computations(MODULE)


def test_a_body_runs_as_often_as_its_loop_and_the_condition_once_more() -> None:
    """The trip count is that of the loop's backend configuration."""
    assert runs_of(COMPUTATIONS) == {"main": 1.0, "body": 5.0, "condition": 6.0}


def test_a_loop_of_unknown_length_counts_once() -> None:
    """Body and condition alike, as in an estimate."""
    text = MODULE.replace(', config={"known_trip_count":{"n":"5"}}', "")
    assert runs_of(parse_computations(text)) == {"main": 1.0, "body": 1.0, "condition": 1.0}


def test_a_collective_sends_what_its_formula_says_in_each_run() -> None:
    """An all-reduce of 32 bytes over two devices sends 2 (2 - 1) / 2 of them."""
    (actual,) = list_collectives(COMPUTATIONS, 4)
    assert (actual.kind, actual.group, actual.bytes, actual.runs) == ("all_reduce", 2, 32.0, 5.0)


def test_bytes_of_combined_reductions_are_rounded_up_each() -> None:
    """Two reductions of 4 bytes over eight devices, which XLA made one of, send 7 bytes each."""
    both = "all-reduce(%x, %x), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%add"
    text = MODULE.replace("all-reduce(%x), replica_groups={{0,1},{2,3}}, to_apply=%add", both).replace(
        "f32[8]", "f32[1]"
    )
    (reduction,) = list_collectives(parse_computations(text), 8)
    assert (reduction.operands, reduction.bytes) == (2, 14)
    tenth = text.replace("{{0,1,2,3,4,5,6,7}}", "[1,10]<=[10]")
    assert [item.bytes for item in list_collectives(parse_computations(tenth), 10)] == [16]


def test_a_permutation_counts_the_devices_that_send_to_others() -> None:
    """Two of four devices send their 32 bytes, one keeps them, and one is idle."""
    pairs = "collective-permute(%x), source_target_pairs={{0,1},{1,2},{2,2}}"
    text = MODULE.replace("all-reduce(%x), replica_groups={{0,1},{2,3}}, to_apply=%add", pairs)
    (permute,) = list_collectives(parse_computations(text), 4)
    assert (permute.kind, permute.bytes) == ("collective_permute", 16)


def test_costs_of_loops_are_multiplied() -> None:
    """XLA's analysis counts a body once; here it counts five times, and the condition six times."""
    once = {"main": (10.0, 0.0, 0.0), "body": (7.0, 1.0, 0.0), "condition": (2.0, 0.0, 1.0)}

    def analyse(text: str) -> tuple[float, float, float]:
        name = text.partition("ENTRY %")[2].partition(" ")[0]
        return once[name]

    weights = LoopWeights(COMPUTATIONS, analyse)
    assert weights.total("main") == (10.0 + 4 * 7.0 + 5 * 2.0, 4.0, 5.0)


BRANCHES = """HloModule m

%first (p: f32[8]) -> f32[8] {
  ROOT %p = f32[8]{0} parameter(0)
}

%second (q: f32[8]) -> f32[8] {
  ROOT %q = f32[8]{0} parameter(0)
}

ENTRY %main (c: pred[], a: f32[8]) -> f32[8] {
  %c = pred[] parameter(0)
  %a = f32[8]{0} parameter(1)
  ROOT %r = f32[8]{0} conditional(%c, %a, %a), true_computation=%first, false_computation=%second
}
"""


def test_branches_count_equally_often() -> None:
    """XLA's analysis counts for each property the branch that costs most; here each of two counts half."""
    once = {"main": (10.0, 4.0, 9.0), "first": (8.0, 0.0, 5.0), "second": (2.0, 3.0, 5.0)}

    def analyse(text: str) -> tuple[float, float, float]:
        return once[text.partition("ENTRY %")[2].partition(" ")[0]]

    weights = LoopWeights(parse_computations(BRANCHES), analyse)
    assert weights.total("main") == (10.0 - 8.0 + 5.0, 4.0 - 3.0 + 1.5, 9.0)


def test_groups_are_read_in_every_form() -> None:
    """Lists, tiles and meshes say the same: two groups of four devices."""
    forms = ("{{0,1,2,3},{4,5,6,7}}", "[2,4]<=[8]", "mesh['a'=4,'b'=2] {'a'}", "mesh['a'=8], device_ids=(0) {'a':(1)4}")
    assert [group_size(f"replica_groups={form}, x=1", 8) for form in forms] == [4, 4, 4, 4]


def test_custom_calls_are_counted_as_often_as_they_run() -> None:
    """One in a body that runs five times, for each of which XLA counts -1 operation."""
    text = MODULE.replace("%i = s32[]", '%y = f32[8]{0} custom-call(%p), custom_call_target="f"\n  %i = s32[]', 1)
    assert custom_calls(parse_computations(text)) == 5.0


def test_the_computations_that_a_custom_call_names_are_called() -> None:
    """The body that is analysed alone needs the comparison of a top-k in front of it."""
    line = '  %t = (f32[2], s32[2]) custom-call(%x), custom_call_target="TopK", called_computations={%add, %c}'
    actual = parse_computations(MODULE.replace("  %r = ", f"{line}\n  %r = "))
    (call,) = [item for item in actual["body"].instructions if item.opcode == "custom-call"]
    assert call.called == ("add", "c")
    assert call.branches == ()
