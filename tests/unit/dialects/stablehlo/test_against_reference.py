"""The rules of random ops, against the reference."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("jaxlib.mlir")

from shardy_py.oracle import conformance
from shardy_py.oracle.reference import Reference
from tests.unit.dialects.stablehlo import random_batched_ops, random_moving_ops, random_ops, random_windows

GENERATORS = [
    *random_ops.GENERATORS,
    *random_windows.GENERATORS,
    *random_moving_ops.GENERATORS,
    *random_batched_ops.GENERATORS,
]
PIPELINE = "sdy-populate-op-sharding-rules{conservative-propagation=%s}"


@pytest.fixture(scope="module")
def reference():
    """The reference, running."""
    with Reference() as running:
        yield running


def check(reference, generator, seed, *, count, conservative):
    """Compare the rules of some random ops of one kind; return how many there were."""
    random = Random(f"{generator.__name__} {seed}")
    functions = [generator(random).replace("@NAME", f"@f{number}") for number in range(count)]
    pipeline = PIPELINE % str(conservative).lower()
    text = "\n".join(functions)
    expected = reference.run(text, pipeline)
    assert expected.ok, f"{expected.text}\n{text}"
    assert conformance.run(text, pipeline).strip() == expected.text.strip()
    return expected.text.count("op_sharding_rule<")


@pytest.mark.conformance
@pytest.mark.parametrize("conservative", [False, True], ids=["default", "conservative"])
@pytest.mark.parametrize("generator", GENERATORS, ids=lambda function: function.__name__)
def test_random_ops_have_the_rules_of_the_reference(reference, generator, conservative):
    """Forty random ops of each kind print with the same rules, in both modes."""
    assert check(reference, generator, 0, count=40, conservative=conservative) >= 40


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(1, 26))
def test_many_random_ops_have_the_rules_of_the_reference(reference, seed):
    """Every further seed gives the same rules as the reference, too."""
    for generator in GENERATORS:
        assert check(reference, generator, seed, count=40, conservative=bool(seed % 2)) >= 40
