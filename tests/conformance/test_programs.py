"""Real programs: rules and the four propagation passes against the reference; round trips through the op graph."""

import gzip

import pytest

pytest.importorskip("jax", reason="the reference makes its contexts with jax")

from shardy_py.frontends.mlir import import_module, parse_module, print_module, write_back
from shardy_py.oracle.conformance import run
from tests.conformance.conformance_data import DATA, need, script

need("programs", "reference.py", "compare.py")

NAMES = sorted(path.name.removesuffix(".mlir.gz") for path in (DATA / "programs").glob("*.mlir.gz"))
FAST = ("beam_search_while", "calls_diff_sharding", "gpt_scan_unroll_fwd", "moe_dense", "prio_mlp_0", "shardmap_nested")
PIPELINES = (
    "sdy-populate-op-sharding-rules",
    "sdy-basic-propagate",
    "sdy-aggressive-propagate",
    "sdy-op-priority-propagate",
    "sdy-user-priority-propagate",
)


@pytest.fixture(scope="module")
def oracle():
    """The reference in a process of its own."""
    with script("reference").Oracle(timeout=120) as oracle:
        yield oracle


def _text(name):
    return gzip.decompress((DATA / "programs" / f"{name}.mlir.gz").read_bytes()).decode()


def _check(name, pipeline, oracle):
    text = _text(name)
    expected = oracle.run(text, pipeline)
    if expected.kind != "ok":
        pytest.skip(f"the reference answers {expected.kind}")
    report = script("compare").compare(expected.text, run(text, pipeline), 3, oracle)
    assert report.equal, str(report)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", FAST)
def test_a_chosen_program_is_as_the_reference_has_it(name, pipeline, oracle):
    """A few programs with loops, calls, regions and priorities are compared on every run."""
    _check(name, pipeline, oracle)


@pytest.mark.conformance
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in FAST])
def test_every_program_is_as_the_reference_has_it(name, pipeline, oracle):
    """All programs agree for every pass."""
    _check(name, pipeline, oracle)


def _round_trip(name):
    module = parse_module(_text(name))
    before = print_module(module)
    return before, print_module(write_back(import_module(module)))


@pytest.mark.parametrize("name", FAST)
def test_a_chosen_program_survives_the_round_trip(name):
    """Importing and writing back changes nothing."""
    before, after = _round_trip(name)
    assert after == before


@pytest.mark.conformance
def test_every_program_survives_the_round_trip():
    """Importing and writing back changes nothing, whatever the program."""
    changed = [name for name in NAMES if len(set(_round_trip(name))) > 1]
    assert changed == []
