"""The collectives that are counted are those that the reference inserts, on real programs."""

import gzip
import re
from collections import Counter

import pytest

pytest.importorskip("jax", reason="the reference makes its contexts with jax")

from shardy_py.api.main_function import find_main
from shardy_py.cost.estimates import estimate
from shardy_py.frontends.mlir import import_module, parse_module
from shardy_py.ir.graph.shardings import load_shardings
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.oracle.conformance import reference_registry
from shardy_py.transforms.pass_names import parse_pipeline
from tests.conformance.conformance_data import DATA, need, script

need("programs", "reference.py")

NAMES = sorted(path.name.removesuffix(".mlir.gz") for path in (DATA / "programs").glob("*.mlir.gz"))
FAST = ("beam_search_while", "calls_diff_sharding", "moe_dense", "shardmap_nested", "prio_mlp_0")
COLLECTIVES = (
    "sdy-propagation-pipeline,sdy-insert-explicit-reshards{enable-full-version=true},sdy-reshard-to-collectives"
)
_OP = re.compile(
    r"\b(?:sdy|stablehlo)\.(all_gather|all_reduce|all_slice|all_to_all|collective_broadcast|collective_permute"
    r'|reduce_scatter|replicated_to_unreduced|reshard|sharded_to_unreduced)(?:"\(|"?[ <(])'
)


@pytest.fixture(scope="module")
def oracle():
    """The reference in a process of its own."""
    with script("reference").Oracle(timeout=120) as oracle:
        yield oracle


def _text(name):
    return gzip.decompress((DATA / "programs" / f"{name}.mlir.gz").read_bytes()).decode()


def _expected(name, pipeline, oracle):
    """Return the number of collectives of each kind in what the reference prints."""
    result = oracle.run(_text(name), pipeline)
    if result.kind != "ok":
        pytest.skip(f"the reference answers {result.kind}: {result.text[:200]}")
    return Counter(_OP.findall(result.text))


def _counted_after(name, pipeline):
    program = import_module(parse_module(_text(name)))
    registry = reference_registry()
    load_shardings(program, registry)
    for item in parse_pipeline(pipeline):
        item.run(program, PassContext(registry))
    transfers = estimate(program, find_main(program), registry).transfers
    # Halos of windows are no collectives of the program.
    actual = {item.op_id: item.kind for item in transfers if not item.how.startswith("halo")}
    return Counter(actual.values())


@pytest.mark.parametrize("name", FAST)
def test_the_collectives_of_a_chosen_program_are_those_of_the_reference(name, oracle):
    """Number and kinds agree after full explicit reshards and reshards to collectives."""
    assert _counted_after(name, COLLECTIVES) == _expected(name, COLLECTIVES, oracle)


@pytest.mark.conformance
@pytest.mark.parametrize("name", [name for name in NAMES if name not in FAST])
def test_the_collectives_of_every_program_are_those_of_the_reference(name, oracle):
    """Number and kinds agree on all programs that the reference accepts."""
    assert _counted_after(name, COLLECTIVES) == _expected(name, COLLECTIVES, oracle)
