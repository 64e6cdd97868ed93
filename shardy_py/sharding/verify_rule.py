"""Verify op sharding rules: each broken invariant is a diagnostic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardy_py.errors import Diagnostic
from shardy_py.sharding.rule import DimMapping, OpShardingRule, TensorMapping, factor_symbol

Shapes = Sequence[Sequence[int | None] | None]
"""The static shape of every value; None for a value without one."""


def verify_op_sharding_rule(
    rule: OpShardingRule, operand_shapes: Shapes | None = None, result_shapes: Shapes | None = None
) -> list[Diagnostic]:
    """Return the problems of a rule.

    Args:
        rule: The rule.
        operand_shapes: The shapes of the operands of its op; None leaves them out of account.
        result_shapes: The shapes of the results.
    """
    problems = [
        *_values(rule, rule.operand_mappings, operand_shapes, "operand"),
        *_values(rule, rule.result_mappings, result_shapes, "result"),
    ]
    if problems:
        return problems
    return [*_unused(rule), *_special_factors(rule)]


def _values(
    rule: OpShardingRule, mappings: Sequence[TensorMapping], shapes: Shapes | None, kind: str
) -> Iterator[Diagnostic]:
    if shapes is not None and len(shapes) != len(mappings):
        message = f"number of {kind}s and mappings must match: {len(shapes)} != {len(mappings)}"
        yield Diagnostic("mapping-count", message, hint=f"write one mapping per {kind}, [] for a scalar")
        return
    if not mappings:
        message = f"number of {kind} mappings cannot be 0"
        yield Diagnostic("mapping-count", message, hint="only an op with operands and results can have a rule")
    for index, mapping in enumerate(mappings):
        role = kind if len(mappings) == 1 else f"{kind} {index}"
        if shapes is not None:
            yield from _shape_problems(mapping, shapes[index], role)
        yield from _mapping_problems(rule, mapping, role)


def _shape_problems(mapping: TensorMapping, shape: Sequence[int | None] | None, role: str) -> Iterator[Diagnostic]:
    if shape is None:
        message = f"{role} - expected a ranked tensor with a static shape"
        yield Diagnostic("mapping-shape", message, hint="an op on dynamic or unranked values cannot have a rule")
    elif len(mapping) != len(shape):
        message = f"{role} - mapping rank must match: {len(mapping)} != {len(shape)}"
        yield Diagnostic("mapping-rank", message, hint=f"write {len(shape)} dimensions, each with its factors")


def _mapping_problems(rule: OpShardingRule, mapping: TensorMapping, role: str) -> Iterator[Diagnostic]:
    seen: dict[int, int] = {}
    for index, dim in enumerate(mapping):
        where = f"{role} - dim {index}:"
        yield from _dim_problems(rule, dim, where)
        for factor in dim:
            if factor in seen:
                message = f"{where} cannot reuse factors for the same tensor value: {factor_symbol(factor)}"
                message += f", already in dim {seen[factor]}"
                yield Diagnostic("factor-reuse", message, hint="give the dimension a factor of its own")
            seen.setdefault(factor, index)


def _dim_problems(rule: OpShardingRule, dim: DimMapping, where: str) -> Iterator[Diagnostic]:
    if not dim:
        message = f"{where} dim mapping must have at least one factor"
        yield Diagnostic("factor-missing", message, hint="a dimension of size 1 has a factor of size 1")
    for factor in dim:
        if not 0 <= factor < rule.num_factors:
            message = f"{where} expecting factor indices to be within 0<=...<num_factors; received: {factor}"
            message += f", num_factors: {rule.num_factors}"
            yield Diagnostic("factor-unknown", message, hint="list the factor with its size in {...}")
        elif len(dim) > 1 and rule.factor_sizes[factor] == 1:
            message = f"{where} dim mapping can't have a factor of size 1 if there are multiple factors: "
            yield Diagnostic("factor-size-one", message + factor_symbol(factor), hint="leave that factor out")


def _unused(rule: OpShardingRule) -> Iterator[Diagnostic]:
    used = {factor for mapping in rule.mappings for dim in mapping for factor in dim}
    for factor, size in enumerate(rule.factor_sizes):
        if factor not in used:
            message = f"has factor {factor_symbol(factor)}={size} that isn't used in operand and result mappings"
            yield Diagnostic("factor-unused", message, hint="remove the factor or map a dimension to it")


def _special_factors(rule: OpShardingRule) -> Iterator[Diagnostic]:
    kinds = {
        "reduction": rule.reduction_factors,
        "need_replication": rule.need_replication_factors,
        "permutation": rule.permutation_factors,
    }
    for kind, factors in {**kinds, "blocked_propagation": rule.blocked_propagation_factors}.items():
        yield from _index_problems(rule, kind, factors)
    owner: dict[int, str] = {}
    for kind, factors in kinds.items():
        for factor in factors:
            if owner.setdefault(factor, kind) != kind:
                message = (
                    f"{kind}: a factor can only be in one of the reduction, need replication, or permutation factor "
                    f"sets: {factor_symbol(factor)} is also in {owner[factor]}"
                )
                yield Diagnostic("factor-kinds", message, hint="keep it in one of them")
    in_results = {factor for mapping in rule.result_mappings for dim in mapping for factor in dim}
    for factor in rule.reduction_factors:
        if factor in in_results:
            message = f"reduction factor cannot be in result mappings: {factor_symbol(factor)}"
            yield Diagnostic("factor-reduction", message, hint="a reduced factor is gone from every result")


def _index_problems(rule: OpShardingRule, kind: str, factors: Sequence[int]) -> Iterator[Diagnostic]:
    if list(factors) != sorted(factors):
        message = f"{kind}: indices of special factors must be sorted"
        names = ", ".join(factor_symbol(factor) for factor in sorted(set(factors)))
        yield Diagnostic("factor-order", message, hint=f"write {kind}={{{names}}}")
    if len(set(factors)) != len(factors):
        yield Diagnostic("factor-order", f"{kind}: indices of special factors must be unique", hint="name each once")
    for factor in factors:
        if not 0 <= factor < rule.num_factors:
            message = f"{kind}: index must be non-negative and less than {rule.num_factors}, got: {factor}"
            yield Diagnostic("factor-unknown", message, hint="list the factor with its size in {...}")
