"""Random reshards become the collectives of the reference, and random collectives are simplified as there."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("jaxlib")

from shardy_py.oracle.compare import compare
from shardy_py.oracle.conformance import run
from shardy_py.oracle.reference import Reference
from tests.conformance.collective_programs import collectives_module, reshards_module

RESHARDS = "sdy-reshard-to-collectives"
REFERENCE_PATTERNS = "canonicalize{top-down=false enable-patterns=sdy-collective}"
SIZES = [(2, 4, 8), (2, 4, 8), (2, 3, 4, 6)]


@pytest.fixture(scope="module")
def reference():
    """One worker for all programs."""
    with Reference() as reference:
        yield reference


def check_reshards(reference, seed, sizes, functions):
    """Compare one module of reshards; where the reference refuses a function, ours must be valid."""
    text = reshards_module(random.Random(seed), functions, sizes)
    expected = reference.run(text, RESHARDS)
    if expected.ok:
        assert compare(expected.text, run(text, RESHARDS))
        return
    for number in range(functions):
        single = reshards_module(random.Random(seed * functions + number), 1, sizes)
        expected, actual = reference.run(single, RESHARDS), run(single, RESHARDS)
        assert not expected.ok or compare(expected.text, actual)


def check_collectives(reference, seed, functions):
    """Compare one module of collectives."""
    text = collectives_module(random.Random(seed), functions)
    expected = reference.run(text, REFERENCE_PATTERNS)
    assert expected.ok, expected
    assert compare(expected.text, run(text, "sdy-canonicalize-collectives"))


@pytest.mark.parametrize("seed", range(3))
def test_reshards(seed, reference):
    """Some hundred reshards over different meshes, with sub-axes."""
    check_reshards(reference, seed, SIZES[seed], 100)


@pytest.mark.parametrize("seed", range(2))
def test_collectives(seed, reference):
    """Some hundred chains of collectives."""
    check_collectives(reference, seed, 100)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(100, 150))
def test_many_more(seed, reference):
    """The same for thousands."""
    check_reshards(reference, seed, SIZES[seed % 3], 100)
    check_collectives(reference, seed, 100)
