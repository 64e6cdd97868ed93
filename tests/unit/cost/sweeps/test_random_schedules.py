"""What can be put in order, and random schedules."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from shardy_py.cost.sweeps.named_schedules import NamedSchedule, named_schedules
from shardy_py.cost.sweeps.random_schedules import SweepOpKind, op_kinds, random_schedules
from shardy_py.errors import OptionError
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.interfaces.ops import Broadcast, Contraction, Elementwise
from shardy_py.plugins import PluginInfo, Registry
from shardy_py.propagation import DEFAULT, compile_program
from shardy_py.schedule.builtin import BUILTIN, EVERYTHING
from shardy_py.schedule.from_options import order_ops
from shardy_py.schedule.model import Direction, Entry, Level, OpPriority, Schedule, Selector
from shardy_py.schedule.toml import parse_schedule
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import FactorKind
from tests.unit.propagation.toy import toy_registry

KINDS = (
    SweepOpKind("toy.add", (Elementwise,), (FactorKind.PASS_THROUGH,)),
    SweepOpKind("toy.matmul", (Contraction,), (FactorKind.PASS_THROUGH, FactorKind.REDUCTION)),
    SweepOpKind("toy.neg", (Elementwise,), (FactorKind.PASS_THROUGH,)),
    SweepOpKind("toy.repeat", (Broadcast,), (FactorKind.PASS_THROUGH,)),
)


def test_the_kinds_are_those_that_occur() -> None:
    """Names are sorted, with the traits that schedules speak of and all kinds of factors; barriers are left out."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [tensor(8, 8)]) as (x,):
        y = b.op("toy.matmul", [x, x], [tensor(8, 8)])
        z = b.op("toy.add", [y, x], [tensor(8, 8)])
        z = b.op("sdy.propagation_barrier", [z], [tensor(8, 8)], attributes={"allowed_direction": 1})
        first, _ = b.op("toy.two", [b.op("toy.unknown", [z], [tensor(8)])], [tensor(8), tensor(8)])
        b.return_(b.op("toy.repeat", [first], [tensor(8, 8)]))
    actual = op_kinds(compile_program(b.program, toy_registry()))
    assert [kind.name for kind in actual] == ["toy.add", "toy.matmul", "toy.repeat", "toy.two"]
    assert [kind.traits for kind in actual] == [(Elementwise,), (), (Broadcast,), ()]
    assert actual[1].factor_kinds == (FactorKind.PASS_THROUGH, FactorKind.REDUCTION)


def test_a_seed_gives_the_same_schedules_whatever_the_count() -> None:
    """The first of many are those of a few; another seed gives others."""
    few, many = random_schedules(KINDS, 5, seed=3), random_schedules(KINDS, 40, seed=3)
    assert many[:5] == few
    assert [item.name for item in few] == [f"random-3-{i}" for i in range(5)]
    assert {item.text for item in many} != {item.text for item in random_schedules(KINDS, 40, seed=4)}
    assert len({item.text for item in many}) > 35


def test_the_process_makes_no_difference() -> None:
    """Another hash seed draws the same schedules."""
    code = (
        "from tests.unit.cost.sweeps.test_random_schedules import KINDS, random_schedules;"
        "print('\\n'.join(item.text for item in random_schedules(KINDS, 5)))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {"".join(f"{item.text}\n" for item in random_schedules(KINDS, 5))}


def test_random_schedules_use_all_that_a_schedule_can_say() -> None:
    """Over many draws there are names, traits, single kinds of factors, uses and directions, and nothing else."""
    drawn = random_schedules(KINDS, 300)
    entries = [entry for item in drawn for level in item.schedule.levels[:-1] for entry in level.entries]
    assert {name for entry in entries for name in entry.selector.names} == {kind.name for kind in KINDS}
    assert {t for entry in entries for t in entry.selector.traits} == {Elementwise, Contraction, Broadcast}
    assert {entry.selector.uses for entry in entries} == {"any", "single", "multiple"}
    assert {entry.direction for entry in entries} == {Direction.BOTH, Direction.FORWARD, Direction.BACKWARD}
    narrowed = [entry.selector for entry in entries if entry.selector.factor_kinds]
    assert {kind for item in narrowed for kind in item.factor_kinds} == {FactorKind.PASS_THROUGH, FactorKind.REDUCTION}
    assert all(item.names == ("toy.matmul",) or item.traits == (Contraction,) for item in narrowed)


def test_every_random_schedule_is_complete_and_survives_toml() -> None:
    """The last level is everything, no level is empty, and the text reads back as the same schedule."""
    for item in random_schedules(KINDS, 100, seed=1):
        assert item.schedule.levels[-1] == EVERYTHING
        assert all(level.entries for level in item.schedule.levels)
        assert parse_schedule(item.text) == item.schedule


def test_schedules_get_names() -> None:
    """A built-in one keeps its name, a value gets a number; the default includes what plugins say."""
    flat = Schedule((EVERYTHING,))
    first = OpPriority(0, Entry(Selector(names=("toy.f",))))
    registry = Registry(plugins=(PluginInfo("toy", priorities=(first,)),))
    names = named_schedules(["default", "flat", flat, NamedSchedule("mine", flat)], registry)
    assert [item.name for item in names] == ["default", "flat", "schedule 2", "mine"]
    assert names[0].schedule != DEFAULT
    assert "toy.f" in names[0].text
    assert names[1].schedule == BUILTIN["flat"]


@pytest.mark.parametrize(
    ("schedules", "message"),
    [
        (["flat", "flat"], "two schedules are named 'flat'"),
        (["best"], "no schedule named 'best'"),
        ([order_ops([[lambda op: True]])], "cannot be written as TOML"),
    ],
)
def test_refused_schedules(schedules: list[object], message: str) -> None:
    """Names stand for one schedule, and each schedule has a text."""
    with pytest.raises(OptionError, match=message):
        named_schedules(schedules)  # type: ignore[arg-type]


def test_levels_have_names_without_gaps() -> None:
    """A level that nothing was drawn for is left out, and the numbers close up."""
    for item in random_schedules(KINDS, 50, seed=2):
        names = [level.name for level in item.schedule.levels[:-1]]
        assert names == [f"level {i}" for i in range(len(names))]
    assert isinstance(EVERYTHING, Level)
