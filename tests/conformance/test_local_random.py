"""Random programs without a partitioner: uneven sizes, axes that divide little, devices in any order.

SHARDY_FUZZ_PROGRAMS sets how many run, SHARDY_FUZZ_SEED the first seed.
"""

from __future__ import annotations

import json
import os
from collections import Counter

import pytest

pytest.importorskip("jax", reason="running programs needs jax")

from tests.conformance.local_answers import answers

WORKER = "tests.conformance.run_local_random"
FIRST = int(os.environ.get("SHARDY_FUZZ_SEED", "0"))
FEW, MANY = (int(os.environ.get("SHARDY_FUZZ_PROGRAMS", default)) for default in ("12", "500"))
NOT_COMPARED = ("large", "order", "too many devices", "no reference", "dynamic")
"""Answers about programs that are not run, or that XLA does not run on one device."""


def check(count: int) -> None:
    """Check the programs of so many seeds."""
    seeds = [str(seed) for seed in range(FIRST, FIRST + count)]
    actual = list(answers(WORKER, seeds))
    wrong = [row for row in actual if row["status"] != "equal" and row["status"] not in NOT_COMPARED]
    assert not wrong, json.dumps(wrong, indent=1)
    counts = Counter(row["status"] for row in actual)
    assert counts["equal"] > count / 2, counts


@pytest.mark.conformance
def test_random_programs_compute_the_same() -> None:
    """Random local programs give what one device gives."""
    check(FEW)


@pytest.mark.fuzz
def test_many_random_programs_compute_the_same() -> None:
    """The same for hundreds."""
    check(MANY)
