"""Local forms of operators whose arguments hold sizes, or that look at places in the whole tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from attrs import evolve

from shardy_dialects.aten.arguments import attribute, normal, operand_number, operand_shape
from shardy_dialects.aten.gradients import RESIZED
from shardy_dialects.aten.local.ops import aten
from shardy_dialects.aten.local.random import RANDOM_FORMS
from shardy_dialects.aten.matrices import MATRICES, SOLVES, WITH_VECTORS, crossed_dim
from shardy_dialects.aten.shapes import RESHAPES
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import Localize, Shard, local_by_types, no_local_form


def _reshape(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the shard in its new shape: the elements of a shard stay together."""
    shard.check_kinds()
    value, shape = shard.operands[0], shard.result_shape()
    if prod(value.shape) != prod(shape):
        raise no_local_form("the operand and the result are cut into different numbers of elements")
    return [aten(shard.emit, "reshape.default", {"self": value}, shape, shape=shape)]


def _sized(name: str) -> Localize:
    """Return the form of an operator one argument of which holds the sizes of its result."""

    def form(op: Op, shard: Shard) -> Sequence[Value]:
        shard.check_kinds()
        return shard.copy(**{name: shard.result_shape()})

    return form


def _input_sized(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the gradient of a slice, whose argument holds the sizes of the result."""
    shard.check_kinds()
    return shard.copy(input_sizes=shard.result_shape())


def _convolution(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the convolution of the shards; where groups are sharded, each device has some of them."""
    shard.check_kinds()
    groups, weight = attribute(op, "groups", 1), operand_number(op, "weight")
    if groups == 1 or weight is None:
        return shard.copy()
    # What does not divide is padded, and so are groups.
    return shard.copy(groups=-(-groups // shard.parts(shard.operand_shardings[weight], 0)))


def _embedding(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the rows of a table; where it is cut into rows, those that the device has, and zeros for the others."""
    table = shard.operand_shardings[0]
    if table is None or shard.parts(table, 0) == 1:
        return local_by_types(op, shard)
    rows = shard.operands[0].shape[0]
    offset = shard.ops.offset(shard.emit, [position * rows for position in shard.positions(table, 0)])
    operands = [*shard.operands, offset]
    return [shard.emit.op("spmd.embedding", operands, [shard.result_type()]).result]


def _group_norm(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the normalization of the device's part of the batch."""
    shard.check_kinds()
    return shard.copy(N=shard.operands[0].shape[0])


def _repeat_interleave(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the copies of the device's elements: those of an element stay together."""
    if attribute(op, "dim") is None:
        return local_by_types(op, shard)
    dim = normal(attribute(op, "dim"), len(operand_shape(op, 0)))
    parts = {shard.parts(sharding, dim) for sharding in (*shard.operand_shardings, *shard.result_shardings)}
    if len(parts) > 1 or operand_shape(op, 0)[dim] % max(parts):
        shard.check_kinds()
    if attribute(op, "output_size") is None:
        return shard.copy()
    return shard.copy(output_size=shard.result_shape()[dim])


def _matrices(op: Op, shard: Shard) -> Sequence[Value]:
    """Return what is computed of the device's matrices; padding has no inverse and no factors, and ends in an error."""
    if any(shard.padded_dims(number) for number in range(len(op.operands))):
        raise no_local_form("the matrices do not divide into equal parts, and padding is no matrix to compute with")
    return local_by_types(op, shard)


def _ignored(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the loss of the device's part of classes: padding counts as targets that are ignored."""
    shard.check_kinds()
    number = operand_number(op, "target")
    type_ = None if number is None else shard.operands[number].type
    if number is None or not isinstance(type_, TensorType):
        raise no_local_form("the loss has no target")
    ignored = shard.ops.scalar(shard.emit, type_.element_type, float(attribute(op, "ignore_index", -100)))
    if ignored is None:
        raise no_local_form(f"{type_.element_type} has no number for targets that are ignored")
    operands = list(shard.operands)
    operands[number] = shard.masked(number, shard.padded_dims(number), ignored)
    return evolve(shard, operands=operands).copy()


def _summed(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the loss of the device's part; that of zeros, which padding is filled with, is no zero."""
    shard.check_kinds()
    if attribute(op, "reduction", 1) and any(shard.padded_dims(number) for number in range(len(op.operands))):
        raise no_local_form("the operands do not divide into equal parts, and padding has a loss of its own")
    return shard.copy()


def _grid(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the grid of the device's part of the batch, which is the first size of the result."""
    shard.check_kinds()
    return shard.copy(size=(shard.operands[0].shape[0], *attribute(op, "size")[1:]))


def _cross(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the cross product of the shards: other dimensions may be of size 3 there."""
    shard.check_kinds()
    return shard.copy(dim=crossed_dim(op))


def _pixels(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the pixels of the device's part: each part has whole groups of channels."""
    return shard.copy()


_SIZED = (
    *("expand.default", "expand_copy.default", "broadcast_to.default", "new_zeros.default", "new_ones.default"),
    *("new_full.default", "new_empty.default"),
)
_CLASS_LOSSES = ("nll_loss.default", "nll_loss_nd.default", "nll_loss_forward.default", "nll_loss2d_forward.default")
_OTHER_LOSSES = (
    *("cross_entropy_loss", "binary_cross_entropy_with_logits", "margin_ranking_loss", "hinge_embedding_loss"),
    *(
        "poisson_nll_loss",
        "cosine_embedding_loss",
        "triplet_margin_loss",
        "multi_margin_loss",
        "multilabel_margin_loss",
    ),
)
_CONVOLUTIONS = (
    *("convolution.default", "convolution_backward.default"),
    *(f"conv{rank}d.{overload}" for rank in (1, 2, 3) for overload in ("default", "padding")),
    *("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input"),
)

FORMS: Mapping[str, Localize] = {
    **{f"aten.{name}": _reshape for name in RESHAPES},
    **{f"aten.{name}": _sized("size") for name in _SIZED},
    **RANDOM_FORMS,
    **{f"aten.{name}": _convolution for name in _CONVOLUTIONS},
    **{f"aten.{name}.default": _matrices for name in (*MATRICES, *SOLVES)},
    **{f"aten.{name}": _matrices for name in WITH_VECTORS},
    **{f"aten.{name}": _ignored for name in _CLASS_LOSSES},
    **{f"aten.{name}.default": _summed for name in _OTHER_LOSSES},
    "aten.affine_grid_generator.default": _grid,
    "aten.cross.default": _cross,
    **{f"aten.{name}.default": _sized("input_size") for name in RESIZED},
    **{f"aten.{name}.default": _input_sized for name in ("diagonal_backward", "unfold_backward")},
    "aten.slice_backward.default": _input_sized,
    "aten.select_backward.default": _input_sized,
    "aten.embedding.default": _embedding,
    "aten.native_group_norm.default": _group_norm,
    "aten.repeat_interleave.self_int": _repeat_interleave,
    "aten.pixel_shuffle.default": _pixels,
    "aten.pixel_unshuffle.default": _pixels,
}
"""The forms by the name of the overload; all other operators of the dialect change in their types only."""
