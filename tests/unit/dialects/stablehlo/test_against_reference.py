"""The rules of random ops against the reference, and laws of the factors of a reshape."""

from __future__ import annotations

from math import prod
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.oracle import conformance
from shardy_py.oracle.reference import Reference
from tests.unit.dialects.stablehlo import random_batched_ops, random_moving_ops, random_ops, random_windows
from tests.unit.dialects.stablehlo.ops import REGISTRY, make_op

pytest.importorskip("jaxlib.mlir")

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


@st.composite
def shapes_of_one_size(draw):
    """Two shapes with the same number of elements: the same prime factors grouped in two ways."""
    primes = draw(st.lists(st.sampled_from([1, 2, 2, 3, 5]), max_size=7))
    return tuple(_grouped(draw, draw(st.permutations(primes))) for _ in range(2))


def _grouped(draw, primes):
    groups: list[int] = []
    for prime in primes:
        if groups and draw(st.booleans()):
            groups[-1] *= prime
        else:
            groups.append(prime)
    return tuple(groups)


def rule_between(shapes):
    """The rule of a reshape."""
    return REGISTRY.get_sharding_rule(make_op("reshape", [shapes[0]], [shapes[1]]))


@given(shapes_of_one_size())
def test_the_factors_of_a_dimension_multiply_to_its_size(shapes):
    """Each dimension of a reshape is exactly the product of its factors."""
    rule = rule_between(shapes)
    for shape, mapping in zip(shapes, (rule.operand_mappings[0], rule.result_mappings[0]), strict=True):
        assert tuple(prod(rule.factor_sizes[factor] for factor in dim) for dim in mapping) == shape


@given(shapes_of_one_size())
def test_common_factors_have_the_same_stride_on_both_sides(shapes):
    """A factor in both shapes runs over the same elements: what is minor to it has the same size in both."""
    rule = rule_between(shapes)
    strides = []
    for mapping in (rule.operand_mappings[0], rule.result_mappings[0]):
        stride, collected = 1, {}
        for factor in reversed([item for dim in mapping for item in dim]):
            collected[factor] = stride
            stride *= rule.factor_sizes[factor]
        strides.append(collected)
    for factor in strides[0].keys() & strides[1].keys():
        assert strides[0][factor] == strides[1][factor]


@given(shapes_of_one_size())
def test_a_reshape_to_the_same_shape_is_pointwise(shapes):
    """A reshape that changes nothing ties every dimension larger than 1 to itself."""
    shape = shapes[0]
    rule = rule_between((shape, shape))
    for size, operand, result in zip(shape, rule.operand_mappings[0], rule.result_mappings[0], strict=True):
        assert operand == result or size == 1
