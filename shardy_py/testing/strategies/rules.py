"""Sharding rules: valid ones, and some that are nearly valid."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule, TensorMapping
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.testing.strategies.tensors import tensor_shardings


@st.composite
def _mapping(draw: st.DrawFn, sizes: list[int], factors: list[int]) -> TensorMapping:
    dims: list[list[int]] = []
    for factor in draw(st.permutations(factors)):
        joins = dims and sizes[factor] > 1 and sizes[dims[-1][-1]] > 1 and draw(st.booleans())
        if joins:
            dims[-1].append(factor)
        else:
            dims.append([factor])
    return tuple(tuple(dim) for dim in dims)


@st.composite
def op_sharding_rules(draw: st.DrawFn, *, max_factors: int = 22) -> OpShardingRule:
    """Draw a valid rule; some have more factors than there are single letters."""
    count = draw(st.one_of(st.integers(0, 4), st.integers(0, max_factors)))
    sizes = [draw(st.sampled_from((1, 2, 3, 4, 8))) for _ in range(count)]
    reduced = draw(st.sets(st.integers(0, count - 1), max_size=2)) if count else set()
    others = [factor for factor in range(count) if factor not in reduced]

    def some(factors: list[int]) -> list[int]:
        return [factor for factor in factors if draw(st.booleans())]

    operands = [draw(_mapping(sizes, list(range(count))))]
    operands += [draw(_mapping(sizes, some(list(range(count))))) for _ in range(draw(st.integers(0, 2)))]
    results = [draw(_mapping(sizes, some(others))) for _ in range(draw(st.integers(1, 2)))]
    kinds: dict[str, Any] = {"need_replication": [], "permutation": [], "none": []}
    for factor in others:
        kinds[draw(st.sampled_from(sorted(kinds)))].append(factor)
    return OpShardingRule(
        tuple(sizes),
        tuple(operands),
        tuple(results),
        tuple(sorted(reduced)),
        tuple(kinds["need_replication"]),
        tuple(kinds["permutation"]),
        tuple(some(list(range(count)))),
        draw(st.booleans()),
    )


@st.composite
def sloppy_op_sharding_rules(draw: st.DrawFn) -> OpShardingRule:
    """Draw a rule that may break any invariant."""
    factors = st.integers(0, 3)
    dims = st.lists(factors, max_size=2).map(tuple)
    mappings = st.lists(st.lists(dims, max_size=2).map(tuple), min_size=1, max_size=2).map(tuple)
    special = st.lists(factors, max_size=2).map(tuple)
    return OpShardingRule(
        tuple(draw(st.lists(st.sampled_from((1, 2, 4)), max_size=3))),
        draw(mappings),
        draw(mappings),
        draw(special),
        draw(special),
        draw(special),
        draw(special),
        draw(st.booleans()),
    )


def rule_shapes(rule: OpShardingRule) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return shapes of operands and results that fit a rule, size 1 where it names unknown factors."""

    def shape(mapping: TensorMapping) -> tuple[int, ...]:
        sizes = dict(enumerate(rule.factor_sizes))
        result = []
        for dim in mapping:
            size = 1
            for factor in dim:
                size *= sizes.get(factor, 1)
            result.append(size)
        return tuple(result)

    return [shape(item) for item in rule.operand_mappings], [shape(item) for item in rule.result_mappings]


@st.composite
def rules_with_shapes(
    draw: st.DrawFn, *, max_factors: int = 6
) -> tuple[OpShardingRule, list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Draw a valid rule with shapes of operands and of results that it fits."""
    rule = draw(op_sharding_rules(max_factors=max_factors))
    return rule, *rule_shapes(rule)


@st.composite
def rule_shardings(draw: st.DrawFn, rule: OpShardingRule, mesh: Mesh) -> tuple[TensorSharding | None, ...]:
    """Draw a sharding over the mesh named ``mesh``, or none, for each tensor of a rule: operands, then results."""
    return tuple(draw(st.none() | tensor_shardings(mesh, rank=len(mapping))) for mapping in rule.mappings)
