"""Rules of products that are not matrices times matrices only."""

from __future__ import annotations

from shardy_dialects.aten.arguments import (
    REPLICATED,
    Rule,
    Tie,
    attribute,
    normal_dims,
    operand_number,
    operand_shape,
    result_shape,
    tied,
    whole,
)
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Contraction, Dialect, Pure
from shardy_py.sharding import einsum
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder

_REDUCED = FactorKind.REDUCTION


def _kronecker(op: Op) -> Rule:
    """Return the rule of the products of all elements of two tensors: those of one of the first stay together."""
    rank = len(result_shape(op))
    ties: list[Tie] = []
    for dim in range(rank):
        for number in (0, 1):
            place = dim - (rank - len(operand_shape(op, number)))
            ties += [({number: place}, {0: dim})] if place >= 0 else []
    return tied(op, ties)


def _pairs(op: Op) -> Rule:
    """Return the rule of all tuples of elements of some vectors, those of the first vector major."""
    if len(op.operands) == 1:
        return tied(op, [({0: 0}, {0: 0})])
    return tied(op, [({number: 0}, {0: 0}) for number in range(len(op.operands))])


def _added_vector(op: Op) -> Rule:
    """Return the rule of a vector plus a matrix times a vector, whose sum must not be split."""
    return tied(op, [({0: 0, 1: 0}, {0: 0}), ({1: 1, 2: 0}, {}, REPLICATED)])


def _added_outer(op: Op) -> Rule:
    """Return the rule of a matrix plus the products of all elements of two vectors."""
    added = operand_shape(op, 0)
    row = {0: len(added) - 2} if len(added) > 1 else {}
    column = {0: len(added) - 1} if added else {}
    return tied(op, [({**row, 1: 0}, {0: 0}), ({**column, 2: 0}, {0: 1})])


def _added_batches(op: Op) -> Rule:
    """Return the rule of a matrix plus the sum of products of matrices, which must not be split."""
    added = operand_shape(op, 0)
    row = {0: len(added) - 2} if len(added) > 1 else {}
    column = {0: len(added) - 1} if added else {}
    sums: list[Tie] = [({1: 0, 2: 0}, {}, REPLICATED), ({1: 2, 2: 1}, {}, REPLICATED)]
    return tied(op, [({**row, 1: 1}, {0: 0}), ({**column, 2: 2}, {0: 1}), *sums])


def _chain(op: Op) -> Rule:
    """Return the rule of a product of several matrices, of which the first and the last may be vectors."""
    last = len(op.operands) - 1
    starts = len(operand_shape(op, 0)) - 1
    ties: list[Tie] = [({0: 0}, {0: 0})] if starts else []
    for number in range(last):
        ties.append(({number: len(operand_shape(op, number)) - 1, number + 1: 0}, {}, _REDUCED))
    if len(operand_shape(op, last)) > 1:
        ties.append(({last: 1}, {0: starts}))
    return tied(op, ties)


def _bilinear(op: Op) -> Rule:
    """Return the rule of a form that is linear in two tensors; with a bias its sums must not be split."""
    bias, rank = operand_number(op, "bias"), len(operand_shape(op, 0))
    kind = _REDUCED if bias is None else REPLICATED
    rows: list[Tie] = [({0: dim, 1: dim}, {0: dim}) for dim in range(rank - 1)]
    features = {2: 0} if bias is None else {2: 0, bias: 0}
    sums: list[Tie] = [({0: rank - 1, 2: 1}, {}, kind), ({1: rank - 1, 2: 2}, {}, kind)]
    return tied(op, [*rows, (features, {0: rank - 1}), *sums])


def _summed_products(op: Op) -> Rule:
    """Return the rule of products of three tensors, each with new dimensions, some of which are summed up."""
    shapes = [operand_shape(op, number) for number in range(3)]
    new = [attribute(op, f"expand{number}", ()) for number in (1, 2, 3)]
    rank = len(shapes[0]) + len(new[0])
    summed_dims = normal_dims(attribute(op, "sumdim") or (rank,), rank + 1)
    ties: list[Tie] = []
    for dim in range(rank):
        ins = {n: dim - sum(other < dim for other in new[n]) for n in range(3) if dim not in new[n]}
        place = dim - sum(other < dim for other in summed_dims)
        ties.append((ins, {}, _REDUCED) if dim in summed_dims else (ins, {0: place}))
    return tied(op, ties)


def _convolution_of_steps(op: Op) -> Rule:
    """Return the rule of a convolution along the first dimension, with a bias: batch and made channels are free."""
    return einsum.rule("t b i, w i o, o -> s b o", need_replication="i t w s", order="b o i")(op)


def _powers(op: Op) -> Rule:
    """Return the rule of the powers of each element, along a new last dimension."""
    return tied(op, [({0: dim}, {0: dim}) for dim in range(len(operand_shape(op, 0)))])


def register(aten: Dialect) -> None:
    """Define the ops."""
    by_rule = {
        _kronecker: ("kron",),
        _pairs: ("cartesian_prod",),
        _added_vector: ("addmv",),
        _added_outer: ("addr",),
        _added_batches: ("addbmm",),
        _chain: ("linalg_multi_dot", "chain_matmul"),
        _bilinear: ("bilinear",),
        _summed_products: ("_trilinear",),
        _convolution_of_steps: ("conv_tbc",),
        _powers: ("vander", "linalg_vander"),
        whole: ("block_diag",),
    }
    for rule, names in by_rule.items():
        for name in names:
            aten.op(f"aten.{name}.default", traits=[Pure], rule=rule)
    aten.op("aten._grouped_mm.default", traits=[Pure, Contraction], rule=_grouped)


def _grouped(op: Op) -> Rule:
    """Return the rule of rows times one matrix of several: columns are free, rows and experts stay together.

    The groups may also be of the columns, or of what is summed up, as in the gradient of the matrices; without groups
    it is a product of as many matrices.
    """
    ranks = len(operand_shape(op, 0)), len(operand_shape(op, 1))
    if operand_number(op, "bias") is not None:
        return None
    if operand_number(op, "offs") is None:
        return einsum.rule("e m k, e k n -> e m n", reduction="k", order="e m n")(op)
    match ranks:
        case (2, 2):
            return einsum.rule("m k, k n, e -> e m n", need_replication="k e", order="m n k")(op)
        case (3, 2):
            return einsum.rule("e m k, k n, e -> m n", reduction="k", need_replication="n e", order="m n k")(op)
        case (2, 3):
            return einsum.rule("m k, e k n, e -> m n", reduction="k", need_replication="m e", order="m e n")(op)
    return None


def _grouped_backward(op: Op) -> Rule:
    """Return the rule of its gradients: the dimension that was contracted is free in both."""
    rows, matrices = operand_shape(op, 0), operand_shape(op, 1)
    ends, grad = operand_number(op, "offs"), operand_number(op, "grad_output")
    if ends is None or grad is None or (len(rows), len(matrices)) != (2, 3):
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    builder.tie({0: 0, grad: 0}, {0: 0}, rows[0], kind=REPLICATED)
    builder.tie({1: 0, ends: 0}, {1: 0}, matrices[0], kind=REPLICATED)
    builder.tie({0: 1, 1: 1}, {0: 1, 1: 1}, rows[1])
    return builder.tie({1: 2, grad: 1}, {1: 2}, matrices[2], kind=REPLICATED).build()


def register_transformers(transformers: Dialect) -> None:
    """Define the op that the library transformers has for devices without that of PyTorch, and its gradients."""
    transformers.op("transformers.grouped_mm_fallback.default", traits=[Pure, Contraction], rule=_grouped)
    transformers.op("transformers.grouped_mm_fallback_backward.default", traits=[Pure], rule=_grouped_backward)
