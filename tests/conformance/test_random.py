"""Random programs: what the reference gives is what shardy_py gives.

SHARDY_FUZZ_PROGRAMS sets the number of programs, SHARDY_FUZZ_SEED the first seed.
"""

import os

import pytest

pytest.importorskip("jaxlib")

from hypothesis import HealthCheck, given, settings

from shardy_py.errors import VerificationError
from shardy_py.oracle import fuzz
from shardy_py.oracle.generate import ALL_FEATURES, DEFAULT_FEATURES, generate
from shardy_py.oracle.reference import Reference
from shardy_py.oracle.strategies import programs

FIRST = int(os.environ.get("SHARDY_FUZZ_SEED", "0"))
PROGRAMS = int(os.environ.get("SHARDY_FUZZ_PROGRAMS", "40"))
MANY = int(os.environ.get("SHARDY_FUZZ_PROGRAMS", "400"))
LONGER = (
    "sdy-add-data-flow-edges,sdy-user-priority-propagate,sdy-sink-data-flow-edges",
    "sdy-add-data-flow-edges,sdy-basic-propagate,sdy-sink-data-flow-edges",
    "sdy-user-priority-propagate{conservative-propagation=true keep-sharding-rules=true}",
    "sdy-user-priority-propagate{propagation-strategy=basic run-op-priority-propagation=false}",
    "sdy-user-priority-propagate{propagation-strategy=basic-then-aggressive}",
    "sdy-op-priority-propagate{propagation-strategy=aggressive}",
)

WHOLE = (
    "sdy-propagation-pipeline",
    "sdy-propagation-pipeline,sdy-propagation-pipeline",
    "sdy-propagation-pipeline{dedup-functions-fully=true}",
    "sdy-import-pipeline",
    "sdy-propagation-pipeline,sdy-insert-explicit-reshards{enable-full-version=true},sdy-reshard-to-collectives",
)
WHOLE_PROGRAMS = max(200, MANY)
"""How many programs the longer run sends through each whole pipeline."""


@pytest.fixture(scope="module")
def reference():
    """One worker for all programs."""
    with Reference() as reference:
        yield reference


def _failures(reference, pipeline, seeds, *, features, size=25):
    failures = []
    for seed in seeds:
        text = generate(seed, size=size, features=features)
        verdict = fuzz.judge(text, pipeline, reference=reference, run=fuzz.ours, seed=seed)
        if verdict.failed:
            failures.append(f"seed {seed}: {verdict.kind} {verdict.where}\n{verdict.report}")
    return failures


@pytest.mark.parametrize("pipeline", fuzz.DEFAULT_PIPELINES)
def test_random_programs(pipeline, reference):
    """The result of a pass is that of the reference on every random program it takes."""
    failures = _failures(reference, pipeline, range(FIRST, FIRST + PROGRAMS), features=DEFAULT_FEATURES)
    assert not failures, f"{len(failures)} of {PROGRAMS} differ; the first:\n{failures[0]}"


@pytest.mark.parametrize("pipeline", WHOLE)
def test_random_programs_through_whole_pipelines(pipeline, reference):
    """Everything from import to collectives gives what the reference gives."""
    failures = _failures(reference, pipeline, range(FIRST, FIRST + PROGRAMS), features=DEFAULT_FEATURES)
    assert not failures, f"{len(failures)} of {PROGRAMS} differ; the first:\n{failures[0]}"


def _inlining_failures(reference, seeds):
    """Return how the results of inlined programs differ from what the reference makes of the inlined text."""
    failures = []
    features = (DEFAULT_FEATURES | {"calls", "named_computation"}) - {"func_data_flow_edges"}
    for seed in seeds:
        text = generate(seed, size=25, features=features)
        if "call @" not in text and "named_computation" not in text:
            continue
        try:
            inlined = fuzz.ours(text, "inline-calls")
        except VerificationError as error:
            # A function that is called where one of its axes is manual already.
            if not all("already bound" in item.message for item in error.diagnostics):
                failures.append(f"seed {seed}: {error}")
            continue
        assert "call @" not in inlined.replace("custom_call @", "")
        verdict = fuzz.judge(
            inlined,
            WHOLE[0],
            reference=reference,
            run=lambda _, pipeline, text=text: fuzz.ours(text, f"inline-calls,{pipeline}"),
            seed=seed,
        )
        if verdict.failed:
            failures.append(f"seed {seed}: {verdict.kind} {verdict.where}\n{verdict.report}")
    return failures


@pytest.mark.conformance
def test_inlined_random_programs(reference):
    """Inlining and propagating gives what the reference makes of the inlined program's text."""
    failures = _inlining_failures(reference, range(FIRST, FIRST + MANY))
    assert not failures, f"{len(failures)} differ; the first:\n{failures[0]}"


@pytest.mark.fuzz
@pytest.mark.parametrize("pipeline", WHOLE)
def test_many_random_programs_through_whole_pipelines(pipeline, reference):
    """So it does for many more programs."""
    seeds = range(FIRST + 50_000, FIRST + 50_000 + WHOLE_PROGRAMS)
    failures = _failures(reference, pipeline, seeds, features=DEFAULT_FEATURES)
    assert not failures, f"{len(failures)} of {WHOLE_PROGRAMS} differ; the first:\n{failures[0]}"


@pytest.mark.fuzz
@pytest.mark.parametrize("size", [8, 70])
@pytest.mark.parametrize("features", [DEFAULT_FEATURES, ALL_FEATURES - {"unknown_region_arguments"}])
@pytest.mark.parametrize("pipeline", [*fuzz.DEFAULT_PIPELINES, *LONGER])
def test_many_random_programs(pipeline, features, size, reference):
    """So it is under every option, with every feature, for small and large programs."""
    seeds = range(FIRST + 10_000, FIRST + 10_000 + MANY)
    if "add-data-flow-edges" in pipeline:
        features = features - {"data_flow_edges", "named_computation", "func_data_flow_edges"}
    failures = _failures(reference, pipeline, seeds, features=features, size=size)
    assert not failures, f"{len(failures)} of {MANY} differ; the first:\n{failures[0]}"


@pytest.mark.fuzz
@settings(max_examples=MANY, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=programs())
def test_drawn_programs(reference, text):
    """So it is for programs drawn by Hypothesis, which shrinks what differs."""
    verdict = fuzz.judge(text, "sdy-user-priority-propagate", reference=reference, run=fuzz.ours)
    assert not verdict.failed, f"{text}\n{verdict.report}"
