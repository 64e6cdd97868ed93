"""Rules derived from indexing maps against the rules that are written by hand for the same ops of StableHLO.

Where both can say the same they are equal but for the names of factors; where they cannot, the test says how they
differ, as ``docs/how-to/indexing-maps.md`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.indexing import AffineMap
from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.sharding.derivation import PARALLEL, REDUCTION, rule_from_indexing_maps
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.verify_rule import verify_op_sharding_rule
from tests.unit.dialects.stablehlo.ops import REGISTRY, make_op

Shape = tuple[int, ...]
Tensor = tuple[str, Shape]
"""The expressions that index a tensor, and its sizes."""

SIZES = st.integers(1, 6)
SHAPES = st.lists(SIZES, min_size=1, max_size=4).map(tuple)


def derived(loops: int, operands: Sequence[Tensor], results: Sequence[Tensor], reduced: Sequence[int] = ()) -> Any:
    """Return the rule of an op whose loops are d0, d1, ..."""
    tensors = [*operands, *results]
    names = ", ".join(f"d{loop}" for loop in range(loops))
    maps = [AffineMap.parse(f"({names}) -> ({text})") for text, _ in tensors]
    kinds = [REDUCTION if loop in reduced else PARALLEL for loop in range(loops)]
    shapes = [shape for _, shape in tensors]
    rule = rule_from_indexing_maps(maps, shapes, num_results=len(results), iterator_types=kinds)
    assert rule is not None
    count = len(operands)
    assert verify_op_sharding_rule(rule, shapes[:count], shapes[count:]) == []
    return renamed(rule)


def written(name: str, operands: Sequence[Any], results: Sequence[Shape], **attributes: Any) -> OpShardingRule:
    """Return the rule of an op of StableHLO."""
    rule = REGISTRY.get_sharding_rule(make_op(name, operands, results, **attributes))
    assert rule is not None
    return renamed(rule)


def renamed(rule: OpShardingRule) -> OpShardingRule:
    """Return a rule whose factors have the numbers in which they occur; those that occur nowhere go."""
    order: dict[int, int] = {}
    for mapping in (*rule.result_mappings, *rule.operand_mappings):
        for dim in mapping:
            for factor in dim:
                order.setdefault(factor, len(order))

    def new(factors: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted(order[factor] for factor in factors if factor in order))

    def mapped(mappings: Any) -> Any:
        return tuple(tuple(tuple(order[factor] for factor in dim) for dim in mapping) for mapping in mappings)

    return OpShardingRule(
        tuple(rule.factor_sizes[factor] for factor in order),
        mapped(rule.operand_mappings),
        mapped(rule.result_mappings),
        new(rule.reduction_factors),
        new(rule.need_replication_factors),
        new(rule.permutation_factors),
        new(rule.blocked_propagation_factors),
    )


def untied(rule: OpShardingRule) -> OpShardingRule:
    """Return a rule in which no dimensions share factors of size 1, which nothing can be sharded along."""
    sizes = list(rule.factor_sizes)

    def own(dim: tuple[int, ...]) -> tuple[int, ...]:
        if any(rule.factor_sizes[factor] != 1 for factor in dim):
            return dim
        sizes.append(1)
        return (len(sizes) - 1,)

    operands = tuple(tuple(map(own, mapping)) for mapping in rule.operand_mappings)
    results = tuple(tuple(map(own, mapping)) for mapping in rule.result_mappings)
    return renamed(evolve(rule, operand_mappings=operands, result_mappings=results, factor_sizes=tuple(sizes)))


def dims(loops: Sequence[int]) -> str:
    """Return the expressions of a tensor with one loop per dimension."""
    return ", ".join(f"d{loop}" for loop in loops)


@given(SHAPES.flatmap(lambda shape: st.tuples(st.just(shape), st.permutations(range(len(shape))))))
def test_transpose(case: tuple[Shape, list[int]]) -> None:
    """Transposes are the same."""
    shape, order = case
    out = tuple(shape[dim] for dim in order)
    actual = derived(len(shape), [(dims(range(len(shape))), shape)], [(dims(order), out)])
    assert actual == written("transpose", [shape], [out], permutation=tuple(order))


@given(SHAPES, st.data())
def test_broadcast(out: Shape, data: st.DataObject) -> None:
    """Broadcasts are the same, whether dimensions are new or of size 1 before; those are indexed by 0."""
    out_dims = data.draw(st.lists(st.sampled_from(range(len(out))), unique=True).map(sorted))
    expanded = [data.draw(st.booleans()) and out[dim] != 1 for dim in out_dims]
    shape = tuple(1 if is_expanded else out[dim] for dim, is_expanded in zip(out_dims, expanded, strict=True))
    text = ", ".join("0" if is_expanded else f"d{dim}" for dim, is_expanded in zip(out_dims, expanded, strict=True))
    actual = derived(len(out), [(text, shape)], [(dims(range(len(out))), out)])
    assert actual == written("broadcast_in_dim", [shape], [out], broadcast_dimensions=tuple(out_dims))


@given(
    *(st.lists(SIZES, max_size=2) for _ in range(4)),
    st.randoms(use_true_random=False),
)
def test_dot(batch: list[int], left: list[int], right: list[int], contracted: list[int], random: Any) -> None:
    """Products are the same, however many dimensions of each kind there are, and in whatever order they stand."""
    sizes = [*batch, *left, *right, *contracted]
    ends = list(accumulate(map(len, (batch, left, right, contracted)), initial=0))
    groups = [list(range(start, end)) for start, end in pairwise(ends)]
    lhs, rhs = [*groups[0], *groups[1], *groups[3]], [*groups[0], *groups[2], *groups[3]]
    random.shuffle(lhs)
    random.shuffle(rhs)
    out = [*groups[0], *groups[1], *groups[2]]
    # The free dimensions of the result come in the order in which they stand in the operands.
    out[len(batch) :] = [
        item for side, letters in ((lhs, groups[1]), (rhs, groups[2])) for item in side if item in letters
    ]
    numbers = {
        "lhs_batching_dimensions": [lhs.index(item) for item in groups[0]],
        "rhs_batching_dimensions": [rhs.index(item) for item in groups[0]],
        "lhs_contracting_dimensions": [lhs.index(item) for item in groups[3]],
        "rhs_contracting_dimensions": [rhs.index(item) for item in groups[3]],
    }
    shapes = [tuple(sizes[item] for item in loops) for loops in (lhs, rhs, out)]
    tensors = [(dims(loops), shape) for loops, shape in zip((lhs, rhs, out), shapes, strict=True)]
    text = "#stablehlo.dot<" + ", ".join(f"{key} = {value}" for key, value in numbers.items()) + ">"
    actual = derived(len(sizes), tensors[:2], tensors[2:], groups[3])
    assert actual == written("dot_general", shapes[:2], shapes[2:], dot_dimension_numbers=text)


@given(SHAPES, st.data())
def test_reduce(shape: Shape, data: st.DataObject) -> None:
    """Reductions are the same, of one tensor or of several at once; initial values are scalars."""
    reduced = sorted(data.draw(st.sets(st.sampled_from(range(len(shape))))))
    count = data.draw(st.integers(1, 2))
    remaining = [dim for dim in range(len(shape)) if dim not in reduced]
    out = tuple(shape[dim] for dim in remaining)
    inputs: list[Tensor] = [(dims(range(len(shape))), shape)] * count
    scalars: list[Tensor] = [("", ())] * count
    actual = derived(len(shape), [*inputs, *scalars], [(dims(remaining), out)] * count, reduced)
    assert actual == written("reduce", [shape] * count + [()] * count, [out] * count, dimensions=tuple(reduced))


@given(SHAPES, st.data())
def test_collapse_and_expand(shape: Shape, data: st.DataObject) -> None:
    """Reshapes that only join neighbours, or only split, are the same: a sum of loops is a compound.

    Dimensions of size 1 have a factor in common by maps, by hand they have none.
    """
    ends = sorted(data.draw(st.sets(st.integers(1, len(shape) - 1)))) if len(shape) > 1 else []
    bounds = [0, *ends, len(shape)]
    groups = [range(start, end) for start, end in pairwise(bounds)]
    joined = tuple(prod(shape[dim] for dim in group) for group in groups)
    text = ", ".join(" + ".join(f"d{dim} * {prod(shape[dim + 1 : group.stop])}" for dim in group) for group in groups)
    unsplit, parts = (text, joined), (dims(range(len(shape))), shape)
    assert untied(derived(len(shape), [unsplit], [parts])) == untied(written("reshape", [joined], [shape]))
    assert untied(derived(len(shape), [parts], [unsplit])) == untied(written("reshape", [shape], [joined]))


def digits(shape: Shape) -> str:
    """Return the expressions of a tensor whose elements one loop visits in row-major order."""
    inner = [*accumulate(reversed(shape), mul, initial=1)][-2::-1]
    return ", ".join(f"(d0 floordiv {divisor}) mod {size}" for divisor, size in zip(inner, shape, strict=True))


@given(st.lists(st.integers(2, 3), min_size=1, max_size=5), st.data())
def test_regroup(factors: list[int], data: st.DataObject) -> None:
    """Any reshape whose two shapes are made of the same factors is the same: they are digits of one loop over all."""

    def grouped() -> Shape:
        ends = sorted(data.draw(st.sets(st.integers(1, len(factors) - 1)))) if len(factors) > 1 else []
        bounds = [0, *ends, len(factors)]
        return tuple(prod(factors[start:end]) for start, end in pairwise(bounds))

    source, target = grouped(), grouped()
    # A tensor without dimensions but one tells how far the loop goes.
    actual = derived(1, [(digits(source), source), ("d0", (prod(factors),))], [(digits(target), target)])
    without_last = evolve(actual, operand_mappings=actual.operand_mappings[:1])
    assert without_last == written("reshape", [source], [target])


def test_shapes_without_common_digits() -> None:
    """Where the digits of two shapes do not nest, a hand-written rule finds what they share, the maps do not."""
    actual = derived(1, [(digits((6, 4)), (6, 4)), ("d0", (24,))], [(digits((4, 6)), (4, 6))])
    assert all(actual.factor_sizes[factor] == 1 for mapping in actual.result_mappings for (factor,) in mapping)
    assert written("reshape", [(6, 4)], [(4, 6)]).factor_sizes == (2, 2, 3, 2, 3, 2)


@given(SHAPES, st.data())
def test_reverse(shape: Shape, data: st.DataObject) -> None:
    """Dimensions that run backwards are permuted in both."""
    turned = sorted(data.draw(st.sets(st.sampled_from(range(len(shape))))))
    text = ", ".join(f"{size - 1} - d{dim}" if dim in turned else f"d{dim}" for dim, size in enumerate(shape))
    actual = derived(len(shape), [(text, shape)], [(dims(range(len(shape))), shape)])
    assert actual == written("reverse", [shape], [shape], dimensions=tuple(turned))


@given(st.lists(st.tuples(SIZES, st.integers(0, 3), st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=4))
def test_slice(cut: list[tuple[int, int, int, int]]) -> None:
    """Slices are the same but for sizes: the maps count the elements taken, the hand-written rule those there are."""
    out = tuple(size for size, _, _, _ in cut)
    shape = tuple(before + (size - 1) * step + 1 + after for size, before, after, step in cut)
    text = ", ".join(f"d{dim} * {step} + {before}" for dim, (_, before, _, step) in enumerate(cut))
    actual = derived(len(cut), [(text, shape)], [(dims(range(len(cut))), out)])
    expected = written("slice", [shape], [out])
    assert actual.factor_sizes == out
    assert expected.factor_sizes == shape
    changed = [dim for dim in range(len(cut)) if shape[dim] != out[dim]]
    assert list(expected.permutation_factors) == list(actual.permutation_factors) == changed
    assert actual.operand_mappings == expected.operand_mappings


@given(SHAPES, st.data())
def test_pad(shape: Shape, data: st.DataObject) -> None:
    """Paddings are the same, sizes included: the loops are those of the elements that are copied."""
    low = [data.draw(st.integers(0, 2)) for _ in shape]
    high = [data.draw(st.integers(0, 2)) for _ in shape]
    out = tuple(size + before + after for size, before, after in zip(shape, low, high, strict=True))
    text = ", ".join(f"d{dim} + {before}" for dim, before in enumerate(low))
    actual = derived(len(shape), [(dims(range(len(shape))), shape), ("", ())], [(text, out)])
    assert actual == written("pad", [shape, ()], [out])


@given(SHAPES, st.data())
def test_elementwise(shape: Shape, data: st.DataObject) -> None:
    """Elementwise ops are the same, with scalar operands, too."""
    tensor, scalar = (dims(range(len(shape))), shape), ("", ())
    loops = len(shape)
    assert derived(loops, [tensor], [tensor]) == written("tanh", [shape], [shape])
    assert derived(loops, [tensor] * 2, [tensor]) == written("add", [shape] * 2, [shape])
    assert derived(loops, [tensor] * 2, [tensor]) == written("compare", [shape] * 2, [shape])
    assert derived(loops, [scalar, tensor, scalar], [tensor]) == written("clamp", [(), shape, ()], [shape])
    assert derived(loops, [scalar, tensor, tensor], [tensor]) == written("select", [(), shape, shape], [shape])
    assert derived(loops, [tensor] * 3, [tensor]) == written("select", [shape] * 3, [shape])


@given(st.lists(SIZES, min_size=1, max_size=3), SHAPES)
def test_concatenate(sizes: list[int], rest: Shape) -> None:
    """The joined dimension costs more by hand: no map says that each operand is read by a part of the loop only."""
    joined = sum(sizes)
    loops = len(rest) + 1
    starts = [0, *accumulate(sizes)]
    others = dims(range(1, loops))
    operands = [(f"d0 - {start}, {others}", (size, *rest)) for start, size in zip(starts, sizes, strict=False)]
    expected = written("concatenate", [shape for _, shape in operands], [(joined, *rest)], dimension=0)
    assert expected.need_replication_factors == (0,)
    actual = derived(loops, operands, [(dims(range(loops)), (joined, *rest))])
    assert actual.need_replication_factors == ()
    assert actual.permutation_factors == ((0,) if len(sizes) > 1 else ())
    assert actual.operand_mappings == expected.operand_mappings
    assert actual.result_mappings == expected.result_mappings
    assert actual.factor_sizes[1:] == expected.factor_sizes[1:]


def windows(size: int, window: int, stride: int, dilation: int) -> int:
    """Return the length of a dimension over which windows slide, without padding."""
    return (size - 1) * stride + (window - 1) * dilation + 1


@given(
    st.lists(st.tuples(SIZES, st.integers(1, 3), st.integers(1, 3), st.integers(1, 2)), min_size=1, max_size=2), SIZES
)
def test_windows(moves: list[tuple[int, int, int, int]], rest: int) -> None:
    """Windows that overlap or leave gaps are permuted as by hand; windows side by side cost less by maps."""
    count = len(moves)
    out = (*(size for size, _, _, _ in moves), rest)
    shape = (*(windows(*move) for move in moves), rest)
    steps = [(dim, stride, dilation) for dim, (_, _, stride, dilation) in enumerate(moves)]
    texts = [f"d{dim} * {stride} + d{dim + count + 1} * {dilation}" for dim, stride, dilation in steps]
    window = tuple(size for _, size, _, _ in moves)
    operands = [(", ".join([*texts, f"d{count}"]), shape), (dims(range(count + 1, 2 * count + 1)), window)]
    loops = 2 * count + 1
    actual = derived(loops, operands, [(dims(range(count + 1)), out)], range(count + 1, loops))
    attributes = {
        "window_dimensions": (*window, 1),
        "window_strides": (*(stride for _, _, stride, _ in moves), 1),
        "padding": DenseElements((count + 1, 2), (0,) * (2 * count + 2), ""),
    }
    expected = written("reduce_window", [shape, ()], [out], **attributes)
    for dim, (size, length, stride, dilation) in enumerate(moves):
        (written_factor,), (factor,) = expected.result_mappings[0][dim], actual.result_mappings[0][dim]
        is_permuted = written_factor in expected.permutation_factors
        assert is_permuted == (length != 1 or stride != 1)
        is_dense = length == 1 or (dilation, stride) == (1, length) or (stride, dilation) == (1, size)
        # One window does not move at all.
        if size == 1 or (size * length == shape[dim] and is_dense):
            assert factor not in actual.permutation_factors
        else:
            assert factor in actual.permutation_factors
            assert actual.operand_mappings[0][dim] == (factor,)
    assert actual.operand_mappings[0][count] == actual.result_mappings[0][count]
