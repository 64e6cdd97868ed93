"""Schedules as lists: what they are, what they refuse, and that upstream's predicates give the same orders."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.mpmd.schedules.predicates import PREDICATES, SchedulingUnit, find_predicate

NAMES = sorted(sdy.mpmd.SCHEDULES)
CHUNKS = {"Circular": 2, "Interleaved1F1B": 2}


def build(name: str, meshes: int, microbatches: int) -> sdy.mpmd.PipelineSchedule:
    """Return a schedule with as many chunks as it has at least."""
    return sdy.mpmd.build_schedule(name, meshes=meshes, microbatches=microbatches, chunks=CHUNKS.get(name, 1))


@pytest.mark.parametrize("meshes", [2, 4, 6])
@pytest.mark.parametrize("factor", [2, 3, 5])
@pytest.mark.parametrize("name", NAMES)
def test_every_schedule_can_run(name: str, meshes: int, factor: int) -> None:
    """Each stage runs each microbatch once, and no mesh waits for what waits for it."""
    schedule = build(name, meshes, meshes * factor)
    schedule.check()
    assert (schedule.mesh_count, schedule.microbatch_count) == (meshes, meshes * factor)
    has_two_chunks = name in CHUNKS or name == "ZB-V"
    assert schedule.stage_count == meshes * (2 if has_two_chunks else 1)


@pytest.mark.parametrize("name", NAMES)
def test_text_is_read_back(name: str) -> None:
    """A schedule is what its text says, also with idle steps in it."""
    schedule = build(name, 4, 8)
    read = sdy.mpmd.PipelineSchedule.parse(str(schedule).replace("\n", ",,\n"))
    assert read.orders == schedule.orders


@pytest.mark.parametrize("name", ["GPipe", "1F1B"])
@pytest.mark.parametrize("meshes", [1, 3, 4])
def test_lists_are_sorted_as_the_predicate_says(name: str, meshes: int) -> None:
    """No later unit of a mesh has to come before an earlier one."""
    schedule = sdy.mpmd.build_schedule(name, meshes=meshes, microbatches=7)
    before = find_predicate(name)
    for mesh, order in enumerate(schedule.orders):
        units = [SchedulingUnit(action.kind.value == "F", action.microbatch, mesh=mesh) for action in order]
        wrong = [(a, b) for i, a in enumerate(units) for b in units[i + 1 :] if before(b, a, meshes)]
        assert wrong == []


@pytest.mark.parametrize("name", ["ZB-H1", "ZB-H2"])
def test_zero_bubble_lists_are_sorted_as_the_predicate_says(name: str) -> None:
    """The same for schedules that split the backward part, on all meshes but the first, which does not split."""
    before = PREDICATES["ZeroBubbleH1" if name == "ZB-H1" else "ZeroBubbleH2ZeroTxLatency"]
    schedule = sdy.mpmd.build_schedule(name, meshes=4, microbatches=10)
    splits = {"I": "keep", "W": "drop"}
    for mesh, order in enumerate(schedule.orders):
        units = [
            SchedulingUnit(item.kind.value == "F", item.microbatch, split=splits.get(item.kind.value, ""), mesh=mesh)
            for item in order
        ]
        wrong = [(a, b) for i, a in enumerate(units) for b in units[i + 1 :] if before(b, a, 4)]
        assert wrong == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("0F0,0B0\n1B0,1F0", "deadlock"),
        ("0B0,0F0", "deadlock"),
        ("0F0,0B0\n1F0", "missing-action"),
        ("0F0,0I0", "missing-action"),
        ("0F0,0B0,0W0", "duplicate-action"),
        ("0F0,0F0", "duplicate-action"),
        ("0X0", "invalid-action"),
        ("", "empty-schedule"),
    ],
)
def test_what_cannot_run_is_refused(text: str, code: str) -> None:
    """The error says what is wrong."""
    with pytest.raises(sdy.ShardyError) as caught:
        sdy.mpmd.PipelineSchedule.parse(text).check()
    assert caught.value.diagnostics[0].code == code


@pytest.mark.parametrize(
    ("name", "meshes", "microbatches", "chunks", "code"),
    [
        ("2F2B", 2, 4, 1, "unknown-schedule"),
        ("1F1B", 0, 4, 1, "invalid-number"),
        ("1F1B", 2, 4, 2, "invalid-number"),
        ("Interleaved1F1B", 4, 6, 2, "invalid-number"),
        ("ZB-V", 4, 6, 1, "invalid-number"),
        ("ZB-V", 2, 4, 3, "invalid-number"),
        ("DualPipe", 3, 8, 1, "invalid-number"),
        ("DualPipe", 4, 6, 1, "invalid-number"),
    ],
)
def test_numbers_without_a_schedule_are_refused(
    name: str, meshes: int, microbatches: int, chunks: int, code: str
) -> None:
    """So are names."""
    with pytest.raises(sdy.OptionError) as caught:
        sdy.mpmd.build_schedule(name, meshes=meshes, microbatches=microbatches, chunks=chunks)
    assert caught.value.diagnostics[0].code == code
