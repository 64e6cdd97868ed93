"""Chains and reasons on the programs beside the project."""

from __future__ import annotations

import gzip
import json

import pytest

from shardy_py import propagate
from tests.conformance.conformance_data import DATA, need
from tests.conformance.sample import sample
from tests.properties.test_explain_programs import check_chains, check_reasons

need("programs/index.json")
pytestmark = pytest.mark.conformance

INDEX = json.loads((DATA / "programs" / "index.json").read_text(encoding="utf-8"))
SMALL = sorted(name for name, info in INDEX.items() if info["ops"] < 120)
MIDDLE = sorted(name for name, info in INDEX.items() if 120 <= info["ops"] < 600)


@pytest.mark.parametrize("name", sample(SMALL + MIDDLE, 2))
def test_every_axis_has_a_chain_and_every_missing_one_a_reason(name: str) -> None:
    """As for random programs; reasons only where the program is small."""
    text = gzip.decompress((DATA / "programs" / f"{name}.mlir.gz").read_bytes())
    trace = propagate(text, trace=True).trace
    assert trace is not None
    check_chains(trace)
    for slot in range(len(trace.problem.slot_values) if name in SMALL else 0):
        sharding = trace.history.last(slot)
        for dimension in range(sharding.rank if sharding else 0):
            check_reasons(trace, slot, dimension)
