"""Rules of linear algebra, of Fourier transforms, and of distances between rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardy_dialects.aten.arguments import (
    REPLICATED,
    Dims,
    Rule,
    RuleFunction,
    Tie,
    aligned,
    attribute,
    broadcast,
    normal,
    normal_dims,
    operand_shape,
    result_shape,
    tied,
    whole,
)
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Localize, Shard, local_by_types, no_local_form
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import einsum, rules
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder

MATRICES = (
    *("linalg_cholesky", "cholesky", "linalg_cholesky_ex", "cholesky_inverse", "linalg_inv", "inverse"),
    "linalg_inv_ex",
    *("linalg_det", "det", "logdet", "slogdet", "linalg_slogdet", "linalg_qr", "linalg_svd"),
    *("linalg_svdvals", "linalg_eigh", "linalg_eigvalsh", "linalg_matrix_exp", "matrix_exp", "linalg_matrix_power"),
    *("matrix_power", "_linalg_det", "_linalg_slogdet", "_linalg_eigh", "_linalg_svd", "linalg_eig", "linalg_eigvals"),
    *("linalg_lu", "linalg_lu_factor", "linalg_ldl_factor", "linalg_cond", "linalg_pinv", "pinverse"),
    *("linalg_lu_factor_ex", "linalg_ldl_factor_ex", "_linalg_eigvals", "geqrf"),
)
"""Ops over one matrix, or over a batch of them."""


SOLVES = {
    "linalg_solve": 1,
    "linalg_solve_triangular": 1,
    "_linalg_solve_ex": 1,
    "linalg_solve_ex": 1,
    "cholesky_solve": 0,
    "triangular_solve": 0,
}
"""Op to the operand with the right sides of its equations."""


WITH_VECTORS = {
    "linalg_householder_product.default": (2, 1),
    "linalg_lu_solve.default": (2, 1, 2),
    "linalg_ldl_solve.default": (2, 1, 2),
    "ormqr.default": (2, 1, 2),
    "lu_unpack.default": (2, 1),
    "linalg_pinv.atol_rtol_tensor": (2, 0, 0),
    "linalg_matrix_rank.atol_rtol_tensor": (2, 0, 0),
}
"""Overload to the number of dimensions of each operand that do not count elements of the batch."""


_ALONG_ONE = ("fft_fft", "fft_ifft", "fft_rfft", "fft_irfft", "fft_hfft", "fft_ihfft")


_ALONG_TWO = ("fft_fft2", "fft_ifft2", "fft_rfft2", "fft_irfft2", "fft_hfft2", "fft_ihfft2")


_ALONG_ALL = ("fft_fftshift", "fft_ifftshift", "_fft_r2c", "_fft_c2c", "_fft_c2r")


_ALONG_LAST = ("fft_fftn", "fft_ifftn", "fft_rfftn", "fft_irfftn", "fft_hfftn", "fft_ihfftn")


def _matrices(op: Op) -> Rule:
    """Return the rule of ops over matrices: batches are free, the last two dimensions of all operands are whole.

    Of equations with several right sides, each is solved by itself.
    """
    sides = SOLVES.get(op.name.split(".")[1]) if attribute(op, "left", True) else None
    batch = operand_shape(op, 0)[:-2]
    ranks = {len(operand_shape(op, number)) for number in range(len(op.operands))}
    outs = range(len(op.results))
    is_batched = all(operand_shape(op, number)[:-2] == batch for number in range(len(op.operands)))
    if len(ranks) > 1 or not is_batched or any(result_shape(op, n)[: len(batch)] != batch for n in outs):
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(batch):
        builder.tie(dict.fromkeys(range(len(op.operands)), dim), dict.fromkeys(outs, dim), size)
    column = len(batch) + 1
    if sides is not None:
        builder.tie({sides: column}, {0: column}, result_shape(op)[column])
    for number in range(len(op.operands)):
        for dim in range(len(batch), len(operand_shape(op, number))):
            if (number, dim) != (sides, column):
                builder.tie({number: dim}, {}, operand_shape(op, number)[dim], kind=REPLICATED)
    for number in outs:
        for dim in range(len(batch), len(result_shape(op, number))):
            if sides is None or (number, dim) != (0, column):
                builder.tie({}, {number: dim}, result_shape(op, number)[dim], kind=REPLICATED)
    return builder.build()


def _with_vectors(op: Op) -> Rule:
    """Return the rule of ops over batches of matrices with vectors or numbers: batches are free."""
    inner = WITH_VECTORS[op.name.removeprefix("aten.")]
    shapes = [operand_shape(op, number) for number in range(len(op.operands))]
    batch = shapes[0][: len(shapes[0]) - inner[0]]
    # One number may serve all matrices.
    batched = [n for n, shape in enumerate(shapes) if shape]
    if any(shapes[n][: len(shapes[n]) - inner[n]] != batch for n in batched):
        return None
    # Results that are not asked for are empty, and have no batch.
    outs = [number for number in range(len(op.results)) if result_shape(op, number)[: len(batch)] == batch]
    ties: list[Tie] = [(dict.fromkeys(batched, dim), dict.fromkeys(outs, dim)) for dim in range(len(batch))]
    if len(inner) > 2 and inner[2] == 2 and attribute(op, "left", True):
        # Each right side is solved by itself.
        ties.append(({2: len(batch) + 1}, {0: len(batch) + 1}))
    return tied(op, ties)


def _windowed_transform(op: Op) -> Rule:
    """Return the rule of transforms of overlapping windows of signals, and back: signals are free."""
    signals = 1 if ".stft" in op.name else 2
    return tied(op, [({0: 0}, {0: 0})] if len(operand_shape(op, 0)) > signals else [])


def _transform(default: Dims) -> RuleFunction:
    """Return the rule of a transform along some dimensions, which are whole."""

    def rule(op: Op) -> Rule:
        rank = len(operand_shape(op, 0))
        return rules.along(op, normal_dims(attribute(op, "dim", default), rank))

    return rule


def _transform_last(op: Op) -> Rule:
    """Return the rule of a transform along the dimensions that it names, or the last ones for which it has sizes."""
    rank, sizes = len(operand_shape(op, 0)), attribute(op, "s")
    last = None if sizes is None else tuple(range(rank - len(sizes), rank))
    return rules.along(op, normal_dims(attribute(op, "dim", last), rank))


def _diagonal(*defaults: int) -> RuleFunction:
    """Return the rule of taking diagonals of two dimensions, which go away; the diagonal is the last one."""

    def rule(op: Op) -> Rule:
        rank = len(operand_shape(op, 0))
        diagonal_dims = {normal(attribute(op, f"dim{n}", default), rank) for n, default in enumerate(defaults, 1)}
        free_dims = [dim for dim in range(rank) if dim not in diagonal_dims]
        return tied(op, [({0: dim}, {0: place}) for place, dim in enumerate(free_dims)])

    return rule


def _to_diagonal(op: Op) -> Rule:
    """Return the rule of making matrices of their diagonals: in the last two dimensions."""
    shape, out = operand_shape(op, 0), result_shape(op)
    dims = {normal(attribute(op, name, default), len(out)) for name, default in (("dim1", -2), ("dim2", -1))}
    if dims != {len(out) - 2, len(out) - 1}:
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape[:-1]):
        builder.tie({0: dim}, {0: dim}, size)
    builder.tie({0: len(shape) - 1}, {}, shape[-1], kind=REPLICATED)
    for dim in sorted(dims):
        builder.tie({}, {0: dim}, out[dim], kind=REPLICATED)
    return builder.build()


def _distances(op: Op) -> Rule:
    """Return the rule of distances of all rows of one matrix from all rows of another: rows are free."""
    left, right, out = operand_shape(op, 0), operand_shape(op, 1), result_shape(op)
    builder, rank = OpShardingRuleBuilder.for_op(op), len(out)
    for dim in range(rank - 2):
        places = {number: aligned(shape[:-2], out[:-2], dim) for number, shape in enumerate((left, right))}
        builder.tie({number: place for number, place in places.items() if place is not None}, {0: dim}, out[dim])
    builder.tie({0: len(left) - 2}, {0: rank - 2}, left[-2]).tie({1: len(right) - 2}, {0: rank - 1}, right[-2])
    return builder.tie({0: len(left) - 1, 1: len(right) - 1}, {}, left[-1], kind=REPLICATED).build()


def _rows(name: str, default: int, kind: FactorKind = REPLICATED) -> RuleFunction:
    """Return the rule of ops that compare two tensors along one dimension, which goes away, or stays as one.

    Args:
        name: The argument that holds it.
        default: The dimension where there is none.
        kind: The kind of its factor.
    """

    def rule(op: Op) -> Rule:
        shapes = [operand_shape(op, 0), operand_shape(op, 1)]
        wide, out = broadcast(shapes), result_shape(op)
        along = normal(attribute(op, name, default), len(wide))
        builder = OpShardingRuleBuilder.for_op(op)
        for dim, size in enumerate(wide):
            places = {number: aligned(shape, wide, dim) for number, shape in enumerate(shapes)}
            ins = {number: place for number, place in places.items() if place is not None}
            result_dim = dim - (dim > along and len(out) < len(wide))
            if dim != along:
                builder.tie(ins, {0: result_dim}, size)
            elif len(ins) == len(shapes):
                builder.tie(ins, {0: dim} if out == wide else {}, size, kind=kind)
            else:
                return None
        return builder.build()

    return rule


def crossed_dim(op: Op) -> int:
    """Return the dimension of a cross product: the first of size 3 where none is named."""
    wide = result_shape(op)
    return normal(attribute(op, "dim", wide.index(3)), len(wide))


def _old_cross(op: Op) -> Rule:
    """Return the rule of a cross product, along the first dimension of size 3 where none is named."""
    wide = result_shape(op)
    free = [dim for dim in range(len(wide)) if dim != crossed_dim(op)]
    return tied(op, [({0: dim, 1: dim}, {0: dim}) for dim in free])


def _inner(op: Op) -> Rule:
    """Return the rule of products that are summed over the last dimensions."""
    left, right = operand_shape(op, 0), operand_shape(op, 1)
    if not left or not right:
        return rules.broadcast(op)
    return rules.contraction(op, contracting=((len(left) - 1,), (len(right) - 1,)))


def _combination(op: Op) -> Rule:
    """Return the rule of sums of tensors with factors, one sum for each row of the factors."""
    return einsum.rule("n ..., m n -> m ...", reduction="n")(op)


def _tensordot(op: Op) -> Rule:
    """Return the rule of products that are summed over the dimensions that they name."""
    sides = zip(("dims_self", "dims_other"), (operand_shape(op, 0), operand_shape(op, 1)), strict=True)
    left, right = ([normal(dim, len(shape)) for dim in attribute(op, name, ())] for name, shape in sides)
    return rules.contraction(op, contracting=(left, right))


def _localize_matrices(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the results for the matrices of the device; padding has no inverse and no factors, so it is an error."""
    if any(shard.padded_dims(number) for number in range(len(op.operands))):
        raise no_local_form("the matrices do not divide into equal parts, and padding is not a matrix to compute with")
    return local_by_types(op, shard)


def _localize_cross(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the cross product of the shards: other dimensions may be of size 3 there."""
    shard.check_kinds()
    return shard.copy(dim=crossed_dim(op))


def register(aten: Dialect) -> None:
    """Define the ops."""
    by_rule = {
        _matrices: (*MATRICES, *SOLVES),
        _transform(-1): _ALONG_ONE,
        _transform((-2, -1)): _ALONG_TWO,
        _transform(None): _ALONG_ALL,
        _transform_last: _ALONG_LAST,
        _diagonal(0, 1): ("diagonal", "diagonal_copy"),
        _diagonal(-2, -1): ("linalg_diagonal",),
        _to_diagonal: ("diag_embed",),
        whole: (
            "trace",
            "diag",
            "diagflat",
            "linalg_tensorinv",
            "linalg_tensorsolve",
            "pdist",
            "_pdist_forward",
            "dist",
            "linalg_lstsq",
            "_pdist_backward",
        ),
        _windowed_transform: ("stft", "istft"),
        _old_cross: ("cross",),
        _distances: ("cdist", "_cdist_forward", "_euclidean_dist"),
        _rows("dim", 1): ("cosine_similarity",),
        _rows("", -1): ("pairwise_distance",),
        _rows("dim", -1): ("linalg_cross",),
        _rows("dim", -1, FactorKind.REDUCTION): ("linalg_vecdot",),
        _inner: ("inner",),
        _combination: ("_compute_linear_combination",),
        _tensordot: ("tensordot",),
    }
    for rule, names in by_rule.items():
        for name in names:
            aten.op(f"aten.{name}.default", traits=[Pure], rule=rule)
    for name in WITH_VECTORS:
        aten.op(f"aten.{name}", traits=[Pure], rule=_with_vectors)


FORMS: Mapping[str, Localize] = {
    **{f"{name}.default": _localize_matrices for name in (*MATRICES, *SOLVES)},
    **dict.fromkeys(WITH_VECTORS, _localize_matrices),
    "cross.default": _localize_cross,
}
"""The local forms by the names of the overloads; those of all other ops change in their types only."""
