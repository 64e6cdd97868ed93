"""Searched schedules: at least as good as those by name, and within memory."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click", reason="the command needs click")

from click.testing import CliRunner

import shardy_py as sdy
from shardy_py.cli.app import shardy
from shardy_py.mpmd.schedules.actions import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, Action
from shardy_py.mpmd.schedules.greedy import GreedyRule, PipelineSizes, greedy_orders

# Rows of arXiv:2401.10241, table 5: meshes, microbatches, times of F, B, W and transfers in ms, the part of activations
# that W needs (table 1 with the sizes of table 3), and the bubble rates of ZB-1p and ZB-2p.
TABLE = [
    (8, 24, (18.522, 18.086, 9.337, 0.601), 0.366, (0.1585, 0.0433)),
    (8, 24, (29.718, 29.444, 19.927, 0.527), 0.432, (0.1323, 0.0029)),
    (8, 32, (18.513, 18.086, 9.331, 0.626), 0.366, (0.1242, 0.0039)),
    (8, 64, (18.546, 18.097, 9.321, 0.762), 0.366, (0.0674, 0.0026)),
    (8, 32, (29.802, 29.428, 19.530, 0.577), 0.432, (0.1045, 0.0022)),
    (8, 64, (29.935, 29.621, 19.388, 0.535), 0.432, (0.0554, 0.0010)),
    (16, 48, (11.347, 11.248, 8.132, 0.377), 0.432, (0.1397, 0.0066)),
    (16, 64, (11.307, 11.254, 8.101, 0.379), 0.432, (0.1088, 0.0054)),
    (16, 128, (11.325, 11.308, 8.109, 0.378), 0.432, (0.0576, 0.0028)),
    (32, 96, (10.419, 10.207, 7.715, 0.408), 0.432, (0.1421, 0.0038)),
    (32, 128, (10.408, 10.204, 7.703, 0.408), 0.432, (0.1106, 0.0029)),
    (32, 256, (10.402, 10.248, 7.698, 0.460), 0.432, (0.0594, 0.0018)),
]
INTERLEAVED_RATES = 0.1055, 0.0808, 0.0818, 0.0443, 0.0628, 0.0320, 0.1104, 0.0852, 0.0445

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


@pytest.mark.parametrize(("meshes", "microbatches", "times", "weight_activations", "rates"), TABLE[:2])
def test_a_search_reaches_the_rates_of_the_paper(
    meshes: int, microbatches: int, times: tuple[float, ...], weight_activations: float, rates: tuple[float, ...]
) -> None:
    """ZB-1p and ZB-2p: the memory of 1F1B and twice that."""
    _expect_rates(meshes, microbatches, times, weight_activations, rates)


@pytest.mark.slow
@pytest.mark.parametrize(("meshes", "microbatches", "times", "weight_activations", "rates"), TABLE[2:])
def test_a_search_reaches_the_other_rates_of_the_paper(
    meshes: int, microbatches: int, times: tuple[float, ...], weight_activations: float, rates: tuple[float, ...]
) -> None:
    """The same for more meshes and microbatches."""
    _expect_rates(meshes, microbatches, times, weight_activations, rates)


def _expect_rates(
    meshes: int, microbatches: int, times: tuple[float, ...], weight_activations: float, rates: tuple[float, ...]
) -> None:
    for limit, rate in zip((meshes, 2 * meshes), rates, strict=True):
        timeline = sdy.mpmd.search_schedule(
            meshes=meshes,
            microbatches=microbatches,
            times=sdy.mpmd.StageTimes(*times),
            limit=limit,
            weight_activations=weight_activations,
        )
        assert round(timeline.bubble_rate, 4) <= rate
        assert timeline.held(weight_activations) <= limit + 1e-9


def _draw_sizes(rng: random.Random) -> PipelineSizes:
    meshes, microbatches = rng.randint(1, 5), rng.randint(1, 9)
    times = sdy.mpmd.StageTimes(*(rng.choice((0.0, 0.5, 1.0, rng.random())) for _ in range(4)))
    limit = min(microbatches, rng.choice((meshes, 1.5 * meshes, microbatches)))
    return PipelineSizes(meshes, microbatches, times, limit, rng.choice((0.0, 0.4, 1.0)))


def test_greedy_orders_take_as_long_as_they_say_and_keep_the_limit() -> None:
    """The simulation of the orders gives the same time, for rules and sizes drawn at random."""
    rng = random.Random("greedy orders")
    for _ in range(60):
        sizes = _draw_sizes(rng)
        in_flight = tuple(rng.randint(1, sizes.microbatches) for _ in range(sizes.meshes))
        rule = GreedyRule(in_flight, rng.choice((0.25, 1.0)), rng.choice((0.0, 1.0, float("inf"))))
        result = greedy_orders(sizes, rule)
        assert result is not None
        longest, orders = result
        timeline = sdy.mpmd.simulate(sdy.mpmd.PipelineSchedule(orders), sizes.times)
        assert timeline.longest == pytest.approx(longest)
        assert timeline.held(sizes.weight_activations) <= sizes.limit + 1e-9
        assert greedy_orders(sizes, rule, longest) is None
        assert greedy_orders(sizes, rule, longest + 0.01) == result


def test_no_order_is_shorter_than_the_bound() -> None:
    """All orders of two meshes and two microbatches, for times drawn at random; the search finds one of the best."""
    rng = random.Random("bound of orders")
    kinds = FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
    of_mesh = [
        [
            order
            for order in permutations([Action(kind, stage, number) for kind in kinds for number in range(2)])
            if all(order.index(a) < order.index(b) for a, b in _ordered_pairs(stage))
        ]
        for stage in range(2)
    ]
    for _ in range(6):
        times = sdy.mpmd.StageTimes(*(rng.choice((0.5, 1.0, rng.random())) for _ in range(4)))
        limit = rng.choice((1, 2))
        sizes = PipelineSizes(2, 2, times, limit, 0.0)
        best = float("inf")
        for orders in product(*of_mesh):
            with suppress(sdy.VerificationError):  # Some are deadlocks.
                timeline = sdy.mpmd.simulate(sdy.mpmd.PipelineSchedule(orders), times)
                best = min(best, timeline.longest if timeline.held(0.0) <= limit else best)
        assert sizes.shortest() <= best + 1e-9
        settings: dict[str, Any] = {
            "meshes": 2,
            "microbatches": 2,
            "times": times,
            "limit": limit,
            "weight_activations": 0.0,
        }
        assert sdy.mpmd.search_schedule(**settings).longest == pytest.approx(best)


def _ordered_pairs(stage: int) -> list[tuple[Action, Action]]:
    """Return what must come first on a mesh: microbatches in order, and the parts of each."""
    kinds = FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
    pairs = [(Action(kind, stage, 0), Action(kind, stage, 1)) for kind in kinds]
    for number in range(2):
        actions = [Action(kind, stage, number) for kind in kinds]
        pairs += pairwise(actions)
    return pairs


def test_interleaved_schedules_are_at_most_those_of_the_paper() -> None:
    """1F1B-I of the same table with five chunks; the paper does not state its number."""
    chunks = 5
    for (meshes, microbatches, times, *_), rate in zip(TABLE[:9], INTERLEAVED_RATES, strict=True):
        schedule = sdy.mpmd.build_schedule("Interleaved1F1B", meshes=meshes, microbatches=microbatches, chunks=chunks)
        *work, transfer = times
        chunk_times = sdy.mpmd.StageTimes(*(time / chunks for time in work), transfer)
        assert round(sdy.mpmd.simulate(schedule, chunk_times).bubble_rate, 4) <= rate


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
