"""Indexing maps of linalg's ops and their windows, against arithmetic of whole tensors."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from shardy_dialects.linalg.windows import CONVOLUTIONS, POOLING_KINDS, POOLING_LAYOUTS, convolution_loops
from shardy_py.ir.graph.attributes import DenseElements, RawAttribute
from shardy_py.plugins import Registry
from tests.unit.dialects.linalg.test_linalg import REGISTRY, rule_of
from tests.unit.dialects.stablehlo.ops import make_op

pytest.importorskip("numpy")


def indexing_of(name, operands, result, **attributes):
    """Return the maps of one op."""
    actual = REGISTRY.get_indexing(make_op(f"linalg.{name}", operands, [result], **attributes))
    assert actual is not None
    return actual


def computed(name, operands, result, **attributes):
    """Return arrays for the inputs, and the sums of their products that the maps of the op read."""
    inputs = [np.random.default_rng(number).integers(-5, 6, shape) for number, shape in enumerate(operands[:-1])]
    maps = indexing_of(name, operands, result, **attributes).output_to_input
    actual = np.zeros(result, int)
    ranges = [range(bound.interval.upper + 1) for bound in maps[0].ranges]
    for index in np.ndindex(*result):
        for inner in product(*ranges):
            pairs = zip(inputs, maps, strict=False)
            actual[index] += np.prod([array[tuple(map_.evaluate(index, inner))] for array, map_ in pairs])
    return inputs, actual


def test_contractions() -> None:
    """Summed loops are range variables."""
    (x, y), actual = computed("batch_matmul", [(2, 3, 4), (2, 4, 5), (2, 3, 5)], (2, 3, 5))
    assert (actual == x @ y).all()
    maps = indexing_of("quantized_matmul", [(2, 3), (3, 4), (), (), (2, 4)], (2, 4)).output_to_input
    assert [len(map_.ranges) for map_ in maps] == [1, 1, 0, 0, 0]


def test_convolutions() -> None:
    """Strides and dilations are factors of the window's place and of its elements."""
    shapes = [(1, 9, 8, 2), (2, 3, 2, 3), (1, 4, 2, 3)]
    (x, w), actual = computed("conv_2d_nhwc_hwcf", shapes, shapes[2], strides=steps(2, 3), dilations=steps(1, 2))
    patches = np.stack([[x[:, i : i + 8 : 2, 2 * j : 2 * j + 6 : 3][:, :4, :2] for j in range(3)] for i in range(2)])
    assert (actual == np.einsum("ijnhwc,ijcf->nhwf", patches, w)).all()


def test_maps_that_are_given() -> None:
    """A generic op reads what its maps say, whatever the order of the result's loops."""
    maps = tuple(RawAttribute(f"affine_map<(a, b) -> {text}>") for text in ("(a * 3 + b)", "(b, a)"))
    (x,), actual = computed("generic", [(12,), (3, 4)], (3, 4), indexing_maps=maps)
    assert (actual == x.reshape(4, 3).T).all()


def test_maps_back() -> None:
    """Operands that are read by variables alone have a map back; others have none."""
    maps = indexing_of("matmul", [(3, 4), (4, 5), (3, 5)], (3, 5)).input_to_output
    assert [str(map_).partition(", domain")[0] for map_ in maps] == [
        "(d0, d1)[s0] -> (d0, s0)",
        "(d0, d1)[s0] -> (s0, d1)",
        "(d0, d1) -> (d0, d1)",
    ]
    pooled = indexing_of("pooling_ncw_sum", [(2, 4, 8), (3,), (2, 4, 6)], (2, 4, 6)).input_to_output
    assert [map_ is None for map_ in pooled] == [True, False, False]


def test_a_softmax_reads_a_whole_row() -> None:
    """The symbol of a map runs over the dimension that it indexes."""
    read = indexing_of("softmax", [(3, 4), (3, 4)], (3, 4), dimension=1).output_to_input[0]
    assert str(read) == "(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 2], d1 in [0, 3], s0 in [0, 3]"


@pytest.mark.parametrize("text", ["(a, a)", "(a, 0)", "(a + b, b)"])
def test_results_that_are_no_loops_have_no_maps(text) -> None:
    """Where a dimension of the result is not a loop of its own, nothing says which loops an element needs."""
    maps = tuple(RawAttribute(f"affine_map<(a, b) -> {item}>") for item in ("(a, b)", text))
    op = make_op("linalg.generic", [(4, 4), (4, 4)], [(4, 4)], indexing_maps=maps)
    assert REGISTRY.get_indexing(op) is None


SIZES = {"n": 2, "c": 3, "f": 4, "g": 2, "m": 2, "d": 4, "h": 6, "w": 8}
WINDOW = 3


def steps(*values):
    """Return strides or dilations as an attribute."""
    return DenseElements((len(values),), values)


def shapes_of(source, kernel):
    """Return the shapes of input, kernel and result for layouts, with windows of three elements."""
    result = source.replace("c", "f") if "f" in kernel else source + "m" * ("m" in kernel)
    return (
        tuple(SIZES[letter] + (WINDOW - 1) * (letter in "dhw") for letter in source),
        tuple(WINDOW if letter in "dhw" else SIZES[letter] for letter in kernel),
        tuple(SIZES[letter] for letter in result),
    )


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_every_convolution_has_a_rule(name) -> None:
    """Space is permuted, windows are whole, channels are summed unless each has its own filters, all else is free."""
    dims, source, kernel = name.removesuffix("_q").rsplit("_", 2)
    scalars = [()] * (2 if name.endswith("_q") else 0)
    full = dims if source == kernel else name
    operands = shapes_of(source, kernel)
    op = make_op(f"linalg.{full}", [*operands[:2], *scalars, operands[2]], [operands[2]])
    rule = REGISTRY.get_sharding_rule(op)
    assert rule.operand_mappings[-1] == rule.result_mappings[0]
    factors = {letter: rule.operand_mappings[0][dim][0] for dim, letter in enumerate(source)}
    space = [letter for letter in source if letter in "dhw"]
    assert set(rule.permutation_factors) == {factors[letter] for letter in space}
    in_kernel = {letter: rule.operand_mappings[1][dim][0] for dim, letter in enumerate(kernel)}
    assert set(rule.need_replication_factors) == {in_kernel[letter] for letter in space}
    is_summed = "c" in source and "f" in kernel
    assert set(rule.reduction_factors) == ({factors["c"]} if is_summed else set())
    for letter in "cg":
        assert (letter in source) * (letter in kernel) == (
            letter in factors and factors[letter] == in_kernel.get(letter)
        )


@pytest.mark.parametrize("layout", POOLING_LAYOUTS)
@pytest.mark.parametrize("kind", POOLING_KINDS)
def test_every_pooling_has_a_rule(layout, kind) -> None:
    """The window's tensor has only a shape; batch and channels are free."""
    window = "".join(letter for letter in layout if letter in "dhw")
    source, kernel, result = shapes_of(layout, window)
    rule = REGISTRY.get_sharding_rule(make_op(f"linalg.pooling_{layout}_{kind}", [source, kernel, result], [result]))
    assert len(rule.permutation_factors) == len(rule.need_replication_factors) == len(window)
    assert rule.operand_mappings[0] == rule.result_mappings[0]


def test_a_convolution_as_text() -> None:
    """Strides and dilations do not change which dimensions share factors."""
    operands = [(2, 10, 12, 3), (3, 3, 3, 4), (2, 4, 5, 4)]
    attributes = {"strides": steps(2), "dilations": steps(1, 1)}
    expected = (
        "<([i, j, k, o], [m, n, o, l], [i, j, k, l])->([i, j, k, l])"
        " {i=2, j=4, k=5, l=4, m=3, n=3, o=3} reduction={o} need_replication={m, n} permutation={j, k}>"
    )
    op = make_op("linalg.conv_2d_nhwc_hwcf", operands, operands[2:], **attributes)
    assert str(REGISTRY.get_sharding_rule(op)) == expected


def test_windows_of_one_element_and_windows_side_by_side_are_free() -> None:
    """A pointwise convolution shards space without communication, and so does a pooling that tiles its input."""
    pointwise = make_op("linalg.conv_2d_nhwc_hwcf", [(2, 4, 5, 3), (1, 1, 3, 4), (2, 4, 5, 4)], [(2, 4, 5, 4)])
    assert REGISTRY.get_sharding_rule(pointwise).permutation_factors == ()
    shapes = [(2, 8, 10, 3), (2, 2), (2, 4, 5, 3)]
    tiled = make_op("linalg.pooling_nhwc_sum", shapes, shapes[2:], strides=steps(2, 2))
    assert str(REGISTRY.get_sharding_rule(tiled)) == (
        "<([i, jm, kn, l], [m, n], [i, j, k, l])->([i, j, k, l]) {i=2, j=4, k=5, l=3, m=2, n=2} reduction={m, n}>"
    )


def test_strides_and_dilations_are_those_of_the_attributes() -> None:
    """The loop that moves the window is multiplied by the stride, the loop over the window by the dilation."""
    shapes = [(2, 20, 20, 3), (3, 3, 3, 4), (2, 6, 6, 4)]
    op = make_op("linalg.conv_2d_nhwc_hwcf", shapes, shapes[2:], strides=steps(2, 3), dilations=steps(4, 5))
    loops = "d0, d1, d2, d3, d4, d5, d6"
    assert str(convolution_loops("nhwc", "hwcf", op).maps[0]) == (
        f"({loops}) -> (d0, d1 * 2 + d4 * 4, d2 * 3 + d5 * 5, d6)"
    )


def test_a_convolution_by_stablehlo() -> None:
    """StableHLO's rule of the same convolution ties the same dimensions; it shards windows, too, as part of space."""
    from shardy_dialects import stablehlo

    attributes = {"dimension_numbers": "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>"}
    known = Registry.of(stablehlo.shardy_register_dialects())
    shapes = [(2, 6, 8, 3), (3, 3, 3, 4), (2, 4, 6, 4)]
    theirs = known.get_sharding_rule(make_op("convolution", shapes[:2], shapes[2:], **attributes))
    ours = REGISTRY.get_sharding_rule(make_op("linalg.conv_2d_nhwc_hwcf", shapes, shapes[2:]))
    for rule in (theirs, ours):
        source, kernel, result = rule.operand_mappings[0], rule.operand_mappings[1], rule.result_mappings[0]
        assert source[0] == result[0]
        assert [dim[0] for dim in source[1:3]] == [dim[0] for dim in result[1:3]]
        assert source[3] == kernel[2]
        assert kernel[3] == result[3]
        assert {dim[0] for dim in result[1:3]} == set(rule.permutation_factors)
        assert source[3][0] in rule.reduction_factors
    assert len(theirs.reduction_factors) >= len(ours.reduction_factors)


def test_unknown_sizes_have_no_rule() -> None:
    """A dynamic dimension of the input is taken to be as long as the windows need."""
    from shardy_py.ir import tensor

    rule = rule_of("linalg.conv_2d", [tensor(None, 8), tensor(3, 3), tensor(6, 6)], tensor(6, 6))
    assert rule.endswith("need_replication={k, l} permutation={i, j}>")
