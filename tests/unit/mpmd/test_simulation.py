"""Simulated timelines against the figures of the literature."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click", reason="the command needs click")

from click.testing import CliRunner

import shardy_py as sdy
from shardy_py.cli.app import shardy
from shardy_py.mpmd.schedules.schedule import dependences

# Bubble rates of arXiv:2401.10241, table 5, from the times of table 9: meshes, microbatches, times of F, B, W and
# transfers in ms, and the rates of 1F1B, ZB-H1 and ZB-H2.
TABLE = [
    (8, 24, (18.522, 18.086, 9.337, 0.601), (0.2431, 0.1585, 0.1083)),
    (8, 32, (18.513, 18.086, 9.331, 0.626), (0.1985, 0.1242, 0.0837)),
    (8, 64, (18.546, 18.097, 9.321, 0.762), (0.1240, 0.0674, 0.0444)),
    (8, 24, (29.718, 29.444, 19.927, 0.527), (0.2347, 0.1323, 0.0698)),
    (8, 32, (29.802, 29.428, 19.530, 0.577), (0.1898, 0.1045, 0.0559)),
    (8, 64, (29.935, 29.621, 19.388, 0.535), (0.1091, 0.0554, 0.0294)),
    (16, 48, (11.347, 11.248, 8.132, 0.377), (0.2552, 0.1397, 0.0672)),
    (16, 64, (11.307, 11.254, 8.101, 0.379), (0.2082, 0.1088, 0.0516)),
    (16, 128, (11.325, 11.308, 8.109, 0.378), (0.1251, 0.0576, 0.0266)),
    (32, 96, (10.419, 10.207, 7.715, 0.408), (0.2646, 0.1421, 0.0641)),
    (32, 128, (10.408, 10.204, 7.703, 0.408), (0.2168, 0.1106, 0.0490)),
    (32, 256, (10.402, 10.248, 7.698, 0.460), (0.1352, 0.0594, 0.0257)),
]


@pytest.mark.parametrize(("meshes", "microbatches", "times", "rates"), TABLE)
def test_bubble_rates_are_those_of_the_paper(
    meshes: int, microbatches: int, times: tuple[float, ...], rates: tuple[float, ...]
) -> None:
    """All three schedules agree to four digits."""
    collected = []
    for name in ("1F1B", "ZB-H1", "ZB-H2"):
        schedule = sdy.mpmd.build_schedule(name, meshes=meshes, microbatches=microbatches)
        collected.append(round(sdy.mpmd.simulate(schedule, sdy.mpmd.StageTimes(*times)).bubble_rate, 4))
    assert tuple(collected) == rates


def test_a_trace_has_a_process_for_each_mesh(tmp_path: Path) -> None:
    """Each event is there with its times; the unit is a millisecond."""
    file = tmp_path / "trace.json"
    arguments = ["mpmd", "simulate", "--meshes", "2", "--microbatches", "2", "--trace", str(file)]
    assert CliRunner().invoke(shardy, arguments).exit_code == 0
    events = json.loads(file.read_text())["traceEvents"]
    assert [event["args"]["name"] for event in events if event["ph"] == "M"] == ["m0", "m1"]
    spans = [(event["pid"], event["name"], event["ts"], event["dur"]) for event in events if event["ph"] == "X"]
    assert spans[0] == (0, "0F0", 0.0, 1000.0)
    assert (1, "1B0", 2000.0, 2000.0) in spans
    assert len(spans) == 8


@pytest.mark.parametrize("meshes", [2, 4, 8])
def test_idle_times_follow_the_formulas(meshes: int) -> None:
    """With p meshes, and v chunks: (p-1)(F+B+W), divided by v, (p-1)(F+B-W), (p-1)(F+B-2W), and none for ZB-V."""
    f, b, w = 1.0, 1.25, 0.75
    times = sdy.mpmd.StageTimes(f, b, w)

    def idle(name: str, chunks: int = 1) -> float:
        schedule = sdy.mpmd.build_schedule(name, meshes=meshes, microbatches=4 * meshes, chunks=chunks)
        timeline = sdy.mpmd.simulate(schedule, times)
        return timeline.longest - timeline.busy / meshes

    assert idle("GPipe") == pytest.approx((meshes - 1) * (f + b + w))
    assert idle("1F1B") == pytest.approx((meshes - 1) * (f + b + w))
    assert idle("ZB-H1") == pytest.approx((meshes - 1) * (f + b - w))
    assert idle("ZB-H2") == pytest.approx((meshes - 1) * (f + b - 2 * w))
    for chunks in (2, 3):
        # A chunk has a stage's times here, so that the work of a mesh grows with their number and its idle time stays.
        assert idle("Circular", chunks) == pytest.approx((meshes - 1) * (f + b + w))
        assert idle("Interleaved1F1B", chunks) == pytest.approx((meshes - 1) * (f + b + w))
    equal = sdy.mpmd.simulate(sdy.mpmd.build_schedule("ZB-V", meshes=meshes, microbatches=4 * meshes))
    assert equal.bubble_rate == pytest.approx(0.0)


def test_live_microbatches_follow_the_formulas() -> None:
    """All of them for GPipe, p - i on mesh i for 1F1B, p for ZB-H1, 2p - 1 for ZB-H2, p + 1 for DualPipe."""

    def live(name: str) -> list[int]:
        timeline = sdy.mpmd.simulate(sdy.mpmd.build_schedule(name, meshes=4, microbatches=12))
        return [timeline.live(mesh) for mesh in range(4)]

    assert live("GPipe") == [12, 12, 12, 12]
    assert live("1F1B") == [4, 3, 2, 1]
    assert live("ZB-H1") == [4, 4, 4, 4]
    assert live("ZB-H2") == [7, 7, 7, 7]
    assert live("DualPipe") == [5, 5, 5, 5]


def test_no_event_starts_before_what_it_needs() -> None:
    """An event starts as soon as its mesh is free and what it needs has arrived; only other meshes send it."""
    schedule = sdy.mpmd.build_schedule("ZB-V", meshes=2, microbatches=4)
    timeline = sdy.mpmd.simulate(schedule, {"transfer": 0.5})
    events = {event.action: event for event in timeline.events}
    meshes = schedule.meshes_of_actions()
    for mesh in range(2):
        free = 0.0
        for event in timeline.of_mesh(mesh):
            needed = [events[item] for item in dependences(event.action, 4, meshes)]
            arrivals = [item.end + (0.5 if item.mesh != mesh else 0.0) for item in needed]
            assert event.start == max([free, *arrivals])
            free = event.end


@pytest.mark.parametrize("times", [{"forward": -1.0}, {"transfer": float("nan")}, {"backward": 1.0}, 3, ["forward"]])
def test_times_are_checked(times: Any) -> None:
    """Negative times, those that are not numbers, and those of no part of a stage are refused."""
    schedule = sdy.mpmd.build_schedule("1F1B", meshes=2, microbatches=2)
    with pytest.raises(sdy.OptionError, match=r"not a number from 0 on|not the times of a stage"):
        sdy.mpmd.simulate(schedule, times)


def test_the_command_prints_figures(tmp_path) -> None:
    """As a drawing, as JSON, and from a file; wrong times are told."""
    run = CliRunner().invoke
    base = ["mpmd", "simulate", "--meshes", "2", "--microbatches", "2"]
    drawn = run(shardy, base)
    assert "makespan 9, bubble 33.3 % of all meshes" in drawn.output
    data = json.loads(run(shardy, [*base, "--json", "--times", "F=2,I=1,W=1"]).output)
    assert (data["makespan"], data["live"]) == (12.0, [2, 1])
    file = tmp_path / "own.csv"
    file.write_text("0F0,0B0\n1F0,1B0\n")
    assert "makespan 6" in run(shardy, ["mpmd", "simulate", str(file)]).output
    refused = run(shardy, ["mpmd", "simulate", str(file), "--meshes", "2"])
    assert (refused.exit_code, "--meshes would have no effect" in refused.output) == (2, True)
    refused = run(shardy, [*base, "1F1B", "--meshes", "3"])
    assert (refused.exit_code, "hint: give --schedule 1F1B" in refused.output) == (2, True)
    assert run(shardy, [*base, "--times", "X=1"]).exit_code == 2
    assert run(shardy, [*base, "--csv", "--json"]).exit_code == 2
