"""Random programs through the reshards: what the reference inserts is what shardy_py inserts.

SHARDY_FUZZ_PROGRAMS sets the number of programs, SHARDY_FUZZ_SEED the first seed.
"""

import os

import pytest

pytest.importorskip("jaxlib")

from shardy_py.oracle import fuzz
from shardy_py.oracle.generate import ALL_FEATURES, DEFAULT_FEATURES, generate
from shardy_py.oracle.reference import Reference

FIRST = int(os.environ.get("SHARDY_FUZZ_SEED", "0"))
PROGRAMS = int(os.environ.get("SHARDY_FUZZ_PROGRAMS", "15"))
MANY = int(os.environ.get("SHARDY_FUZZ_PROGRAMS", "400"))
FULL = "sdy-insert-explicit-reshards{enable-full-version=true}"
MINIMAL = "sdy-insert-explicit-reshards{enable-full-version=false}"
# Replicated axes stay where they are when a dimension is resharded along them, which MLIR then refuses.
FEATURES = DEFAULT_FEATURES - {"replicated", "sdy_collectives"}
CONFLICTS = frozenset(
    (
        *("reshape", "dot", "concatenate", "reduce", "reverse", "pad"),
        *("propagation_barrier", "unreduced", "sub_axes", "non_divisible", "device_ids", "several_meshes"),
    )
)


@pytest.fixture(scope="module")
def reference():
    """One worker for all programs."""
    with Reference() as reference:
        yield reference


def _failures(reference, pipeline, seeds, features):
    failures = []
    for seed in seeds:
        text = generate(seed, size=25, features=features)
        verdict = fuzz.judge(text, pipeline, reference=reference, run=fuzz.ours, seed=seed)
        if verdict.failed:
            failures.append(f"seed {seed}: {verdict.kind} {verdict.where}\n{verdict.report}")
    return failures


@pytest.mark.parametrize(
    "pipeline", [FULL, MINIMAL, f"sdy-basic-propagate,{FULL}", "sdy-sharding-constraint-to-reshard"]
)
def test_random_programs(pipeline, reference):
    """Conflicting shardings as they come, and those that propagation leaves, are resharded alike."""
    failures = _failures(reference, pipeline, range(FIRST, FIRST + PROGRAMS), FEATURES)
    assert not failures, f"{len(failures)} of {PROGRAMS} differ; the first:\n{failures[0]}"


@pytest.mark.fuzz
@pytest.mark.parametrize("features", [FEATURES, CONFLICTS, ALL_FEATURES - {"unknown_region_arguments"}])
@pytest.mark.parametrize("pipeline", [FULL, MINIMAL, f"sdy-user-priority-propagate,{FULL}"])
def test_many_random_programs(pipeline, features, reference):
    """So it is with every feature, and where conflicts are frequent."""
    seeds = range(FIRST + 20_000, FIRST + 20_000 + MANY)
    failures = _failures(reference, pipeline, seeds, features)
    assert not failures, f"{len(failures)} of {MANY} differ; the first:\n{failures[0]}"
