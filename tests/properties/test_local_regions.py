"""Local programs of random programs with region ops compute what one device computes.

SHARDY_FUZZ_PROGRAMS sets how many run in the fuzz lane, SHARDY_FUZZ_SEED the first seed.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

pytest.importorskip("numpy")
pytest.importorskip("jaxlib", reason="programs are MLIR text")

import shardy_py as sdy
from shardy_py.testing import run_sharded
from tests.properties.region_dialect import FUNCTIONS, Plugin
from tests.properties.region_programs import make_program

FIRST = int(os.environ.get("SHARDY_FUZZ_SEED", "0"))
MANY = int(os.environ.get("SHARDY_FUZZ_PROGRAMS", "2000"))


def check(first: int, count: int) -> None:
    """Check the programs of some seeds: most of them communicate, all give what one device gives."""
    registry = sdy.Registry.from_entry_points(plugins=[Plugin()])
    wrong, seen = [], Counter[str]()
    for seed in range(first, first + count):
        program = make_program(seed)
        run = run_sharded(program, FUNCTIONS, registry=registry, seed=seed)
        wrong += [] if run.ok else [f"seed {seed}: {run.difference}"]
        optimized = run_sharded(program, FUNCTIONS, registry=registry, seed=seed, optimize=True)
        wrong += [] if optimized.ok else [f"seed {seed}, optimized: {optimized.difference}"]
        seen.update({*run.collectives, *(f"gathered {name}" for name in run.gathered)})
        seen["with collectives"] += bool(run.collectives)
    assert not wrong, "\n".join(wrong)
    if count < 60:
        return
    assert seen["with collectives"] > count / 2, seen
    assert {"gathered toy.yield", "gathered toy.branch", "gathered toy.fused", "all_gather"} <= seen.keys(), seen
    assert any(name.startswith("gathered toy.scan") for name in seen), seen


def test_random_region_ops_compute_on_shards_what_one_device_computes() -> None:
    """Branches, loops, scans and bodies, nested and called, are right in local programs, with all that they capture."""
    check(0, 60)


def test_what_is_behind_a_barrier_is_sharded_as_before_it() -> None:
    """The barrier of this program has no sharding, and its operand is the part of a device."""
    check(70_592, 1)


@pytest.mark.parametrize("seed", [70_468, 70_952, 71_216, 71_756])
def test_collectives_that_nothing_uses_do_not_count_as_users(seed: int) -> None:
    """The plan for communication gives their operands other shardings, under which they would be ill-typed."""
    check(seed, 1)


def test_random_region_ops_can_be_shown() -> None:
    """Local programs of region ops can be written as text and read again."""
    registry = sdy.Registry.from_entry_points(plugins=[Plugin()])
    for seed in range(15):
        assert "func.func @main" in sdy.propagate(make_program(seed), registry=registry, local=True).local().text


@pytest.mark.fuzz
def test_many_random_region_ops_compute_on_shards_what_one_device_computes() -> None:
    """The same for thousands."""
    check(FIRST, MANY)
