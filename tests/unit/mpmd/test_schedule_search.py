"""Searched schedules: at least as good as those by name, and within memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click", reason="the command needs click")

from click.testing import CliRunner

import shardy_py as sdy
from shardy_py.cli.app import shardy

TIMES = sdy.mpmd.StageTimes(2.0, 2.0, 1.0, 0.2)


def test_a_search_is_at_least_as_good_as_schedules_by_name() -> None:
    """Each schedule by name that holds few enough microbatches takes as long, or longer."""
    limit = 3
    timeline = sdy.mpmd.search_schedule(meshes=3, microbatches=4, times=TIMES, limit=limit)
    assert timeline.held() <= limit
    for name in ("1F1B", "ZB-H1", "ZB-H2"):
        other = sdy.mpmd.simulate(sdy.mpmd.build_schedule(name, meshes=3, microbatches=4), TIMES)
        assert other.held() > limit or other.longest >= timeline.longest


def test_a_limit_may_be_infinite() -> None:
    """It is as no limit."""
    limits = None, float("inf")
    timelines = [sdy.mpmd.search_schedule(meshes=2, microbatches=3, times=TIMES, limit=limit) for limit in limits]
    assert timelines[0] == timelines[1]


@pytest.mark.slow
def test_a_search_reaches_the_rate_of_the_paper() -> None:
    """ZB-2p of arXiv:2401.10241, table 5, where gradients of weights need a part of the activations only."""
    times = sdy.mpmd.StageTimes(29.718, 29.444, 19.927, 0.527)
    timeline = sdy.mpmd.search_schedule(meshes=8, microbatches=24, times=times, limit=16, weight_activations=0.37)
    assert round(timeline.bubble_rate, 4) <= 0.0029
    timeline.schedule.check()


def test_interleaved_schedules_are_at_most_those_of_the_paper() -> None:
    """1F1B-I of the same table, whose number of chunks the paper does not state, with the number of layers at most."""
    for meshes, microbatches, chunks, times, rate in (
        (8, 24, 4, (18.522, 18.086, 9.337, 0.601), 0.1055),
        (8, 32, 5, (29.802, 29.428, 19.530, 0.577), 0.0628),
    ):
        schedule = sdy.mpmd.build_schedule("Interleaved1F1B", meshes=meshes, microbatches=microbatches, chunks=chunks)
        *work, transfer = times
        chunk_times = sdy.mpmd.StageTimes(*(time / chunks for time in work), transfer)
        assert sdy.mpmd.simulate(schedule, chunk_times).bubble_rate <= rate


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"meshes": 0}, "meshes is 0"),
        ({"limit": -1}, "limit is -1"),
        ({"weight_activations": 2.0}, "not a number from 0 to 1"),
        ({"limit": 0.5}, "holds at most 0.5 microbatches"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    """The message says what is wrong."""
    with pytest.raises(sdy.OptionError, match=message):
        sdy.mpmd.search_schedule(**{"meshes": 2, "microbatches": 2, **settings})


def test_memory_counts_halves() -> None:
    """What is held between the halves of a backward part is a part of the activations."""
    timeline = sdy.mpmd.simulate(sdy.mpmd.PipelineSchedule.parse("0F0,0I0,0F1,0I1,0W0,0W1"))
    assert timeline.held() == 2.0
    assert timeline.held(0.25) == 1.25


def test_the_command_searches_and_draws(tmp_path: Path) -> None:
    """Options of a search need one; a picture is SVG."""
    run = CliRunner().invoke
    base = ["mpmd", "simulate", "--meshes", "2", "--microbatches", "3"]
    data = json.loads(run(shardy, [*base, "--schedule", "search", "--limit", "2", "--json"]).output)
    assert (data["meshes"], data["microbatches"]) == (2, 3)
    picture = tmp_path / "timeline.svg"
    assert run(shardy, [*base, "--plot", str(picture)]).exit_code == 0
    assert picture.read_text().count("<title>") == 12
    for wrong in (["--limit", "2"], ["--plot", "a.png"], ["--schedule", "search", "--chunks", "2"]):
        assert run(shardy, [*base, *wrong]).exit_code == 2
