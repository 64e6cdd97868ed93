"""Calls that become several ops, because their parts are sharded in different ways.

A bias would be added once per device where a contraction is sharded, and parts of a mean do not add up: a bias becomes
an addition after the contraction, a mean a sum and a division.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from attrs import evolve

from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.torch.frontend.calls import Call
from shardy_py.torch.frontend.types import DTYPES

Emit = Callable[[Call], list[Value | None]]
Rewrite = Callable[[Emit, Call], list[Value | None] | None]
"""Adds the ops of a call and returns its results; None leaves the call as it is."""

_MEAN, _SUM = 1, 2
"""The numbers of the reductions of losses."""
_SHORT = ("f16", "bf16")


def _bias_of_linear(emit: Emit, call: Call) -> list[Value | None] | None:
    bias = call.arguments.get("bias")
    return None if bias is None else [_add(emit, call, _without(emit, call, "bias"), bias)]


def _bias_of_convolution(emit: Emit, call: Call) -> list[Value | None] | None:
    bias = call.arguments.get("bias")
    if bias is None:
        return None
    (result,) = call.types
    assert result is not None, "a convolution has a result"
    convolved = _without(emit, call, "bias")
    unbatched = call.name != "aten.convolution.default" and result.rank == _rank(call.arguments["weight"]) - 1
    spatial = result.rank - (1 if unbatched else 2)
    shape = (_shape(bias)[0], *[1] * spatial)
    return [_add(emit, call, convolved, _view(emit, call, bias, shape))]


def _product_plus(product: str, left: str, right: str) -> Rewrite:
    def rewrite(emit: Emit, call: Call) -> list[Value | None] | None:
        call_arguments = call.arguments
        arguments = {"self": call_arguments[left], "mat2": call_arguments[right]}
        matrix_product = _emit_single(emit, evolve(call, name=product, arguments=arguments, pointwise=False))
        added = _scale(emit, call, call_arguments["self"], call_arguments.get("beta", 1))
        return [_add(emit, call, _scale(emit, call, matrix_product, call_arguments.get("alpha", 1)), added)]

    return rewrite


def _mean(emit: Emit, call: Call) -> list[Value | None] | None:
    value = call.arguments["self"]
    if not isinstance(value, Value):
        return None
    return [_mean_of(emit, call, value, call.arguments.get("dim"), bool(call.arguments.get("keepdim")))]


def _mean_of(emit: Emit, call: Call, value: Value, dims: Any, keepdim: bool) -> Value:
    """Add a sum and a division; halves are summed as floats, as their sum may be out of range."""
    (type_,) = call.types
    assert type_ is not None, "a mean has a result"
    rank = _rank(value)
    reduced_dims = range(rank) if not dims else [dims] if isinstance(dims, int) else dims
    count = prod(_shape(value)[dim] for dim in reduced_dims) if rank else 1
    inner = evolve(type_, element_type="f32", text="") if type_.element_type in _SHORT else type_
    arguments = {"self": value, "dim": list(reduced_dims), "keepdim": keepdim, "dtype": _dtype(inner)}
    total = _emit_single(
        emit, evolve(call, name="aten.sum.dim_IntList", arguments=arguments, types=(inner,), pointwise=False)
    )
    mean = _emit_single(emit, _pointwise(call, "aten.div.Tensor", {"self": total, "other": max(count, 1)}, inner))
    return mean if inner is type_ else _cast(emit, call, mean, type_)


def _loss(emit: Emit, call: Call) -> list[Value | None] | None:
    """Reduce a loss by ops of its own, after the elements of the loss."""
    reduction = call.arguments.get("reduction", _MEAN)
    value = call.arguments["self"]
    if reduction not in (_MEAN, _SUM) or _shape(value) != _shape(call.arguments["target"]):
        return None
    elements = _emit_single(emit, evolve(call, arguments={**call.arguments, "reduction": 0}, types=(value.type,)))
    if reduction == _MEAN:
        return [_mean_of(emit, call, elements, None, False)]
    return emit(evolve(call, name="aten.sum.default", arguments={"self": elements}, pointwise=False))


def _loss_gradient(emit: Emit, call: Call) -> list[Value | None] | None:
    """Divide the gradients of a mean by the number of elements after they are computed as those of a sum."""
    value = call.arguments["self"]
    if call.arguments.get("reduction", _MEAN) != _MEAN or _shape(value) != _shape(call.arguments["target"]):
        return None
    gradient = _emit_single(emit, evolve(call, arguments={**call.arguments, "reduction": _SUM}))
    return [_scale(emit, call, gradient, 1 / max(prod(_shape(value)), 1))]


def _nll_loss_forward(emit: Emit, call: Call) -> list[Value | None] | None:
    """Divide the sum of the losses by the total weight, which sums over the batch, too."""
    if call.arguments.get("reduction") != _MEAN:
        return None
    loss, weight = emit(evolve(call, arguments={**call.arguments, "reduction": _SUM}))
    (type_, _) = call.types
    assert type_ is not None, "the loss is computed"
    return [_emit_single(emit, _pointwise(call, "aten.div.Tensor", {"self": loss, "other": weight}, type_)), weight]


def _nll_loss(emit: Emit, call: Call) -> list[Value | None] | None:
    """Divide the sum of the losses by the number of targets that count."""
    call_arguments = call.arguments
    if call_arguments.get("reduction", _MEAN) != _MEAN or call_arguments.get("weight") is not None:
        return None
    (type_,) = call.types
    assert type_ is not None, "a loss has a result"
    total = _emit_single(emit, evolve(call, arguments={**call_arguments, "reduction": _SUM}))
    target = call_arguments["target"]
    flags = TensorType(_shape(target), "i1")
    counted = _emit_single(
        emit, _pointwise(call, "aten.ne.Scalar", {"self": target, "other": call_arguments["ignore_index"]}, flags)
    )
    arguments = {"self": counted, "dtype": _dtype(type_)}
    count = _emit_single(emit, evolve(call, name="aten.sum.default", arguments=arguments, pointwise=False))
    return [_emit_single(emit, _pointwise(call, "aten.div.Tensor", {"self": total, "other": count}, type_))]


def _cross_entropy(emit: Emit, call: Call) -> list[Value | None] | None:
    """Take the logarithms of the probabilities first, where targets are classes."""
    call_arguments = call.arguments
    logits, target = call_arguments["self"], call_arguments["target"]
    if (
        call_arguments.get("label_smoothing")
        or call_arguments.get("weight") is not None
        or _shape(logits) == _shape(target)
    ):
        return None
    dim = 0 if _rank(logits) == 1 else 1
    arguments = {"self": logits, "dim": dim}
    logs = _emit_single(emit, evolve(call, name="aten.log_softmax.int", arguments=arguments, types=(logits.type,)))
    nll = {
        "self": logs,
        "target": target,
        "reduction": call_arguments["reduction"],
        "ignore_index": call_arguments["ignore_index"],
    }
    second = evolve(call, name="aten.nll_loss_nd.default", arguments=nll)
    return _nll_loss(emit, second) or emit(second)


def _gradients_apart(emit: Emit, call: Call) -> list[Value | None] | None:
    """Compute the gradient of the input apart from those of weight and bias, which sum over the batch."""
    mask = call.arguments["output_mask"]
    if not mask[0] or not any(mask[1:]):
        return None
    masks = (True, *[False] * len(mask[1:])), (False, *mask[1:])
    parts = [
        emit(
            evolve(
                call,
                arguments={**call.arguments, "output_mask": list(part_mask)},
                types=tuple(
                    type_ if is_computed else None for type_, is_computed in zip(call.types, part_mask, strict=True)
                ),
            )
        )
        for part_mask in masks
    ]
    return [parts[0][0], *parts[1][1:]]


def _filled(value: float | None) -> Rewrite:
    """Return the rewrite of a constant that takes only its dtype from a tensor: it needs no tensor."""

    def rewrite(emit: Emit, call: Call) -> list[Value | None] | None:
        call_arguments = call.arguments
        (type_,) = call.types
        assert type_ is not None, "a constant has a result"
        arguments = {
            "size": list(type_.shape),
            "fill_value": call_arguments["fill_value"] if value is None else value,
            "dtype": f"torch.{DTYPES[type_.element_type]}",
            "device": call_arguments.get("device") or "cpu",
        }
        return emit(evolve(call, name="aten.full.default", arguments=arguments, pointwise=False))

    return rewrite


def _without_random_state(emit: Emit, call: Call) -> list[Value | None] | None:
    """Let attention that drops no elements compute its output and the statistics of rows only.

    Its other results are the state of the generator, which nothing reads then: zeros. They have no dimension of the
    batch, so that an op with these results would run on whole operands.
    """
    if call.arguments["dropout_p"] or call.arguments.get("return_debug_mask"):
        return None
    state_types = call.types[2:]
    computed = emit(evolve(call, types=(*call.types[:2], *[None] * len(state_types))))
    fill = _filled(0)
    states = [None if type_ is None else fill(emit, evolve(call, types=(type_,))) for type_ in state_types]
    return [*computed[:2], *(None if state is None else state[0] for state in states)]


def _cast_alike(emit: Emit, call: Call) -> list[Value | None] | None:
    """Cast to the dtype of another tensor, of which nothing else is taken."""
    (type_,) = call.types
    assert type_ is not None, "a cast has a result"
    return [_cast(emit, call, call.arguments["self"], type_)]


_CONVOLUTIONS = ("convolution", "conv1d", "conv2d", "conv3d")
_TRANSPOSED = ("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input")
_LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "soft_margin_loss", "kl_div")
_ATTENTION_ON_GPUS = ("flash_attention", "efficient_attention", "cudnn_attention", "fused_attention_overrideable")
REWRITES: Mapping[str, Rewrite] = {
    "aten.linear.default": _bias_of_linear,
    "aten.addmm.default": _product_plus("aten.mm.default", "mat1", "mat2"),
    "aten.baddbmm.default": _product_plus("aten.bmm.default", "batch1", "batch2"),
    **{f"aten.{name}.default": _bias_of_convolution for name in _CONVOLUTIONS},
    **{f"aten.{name}.padding": _bias_of_convolution for name in _CONVOLUTIONS[1:]},
    **{f"aten.{name}": _bias_of_convolution for name in _TRANSPOSED},
    **{f"aten.{name}.default": _loss for name in _LOSSES},
    **{f"aten.{name}_backward.default": _loss_gradient for name in _LOSSES[:1] + _LOSSES[2:6]},
    "aten.native_layer_norm_backward.default": _gradients_apart,
    "aten._fused_rms_norm_backward.default": _gradients_apart,
    "aten.convolution_backward.default": _gradients_apart,
    "aten.new_zeros.default": _filled(0),
    "aten.new_ones.default": _filled(1),
    "aten.new_full.default": _filled(None),
    # What such a tensor holds is not said.
    "aten.new_empty.default": _filled(0),
    "aten.new_empty_strided.default": _filled(0),
    **{f"aten._scaled_dot_product_{name}.default": _without_random_state for name in _ATTENTION_ON_GPUS},
    "aten.type_as.default": _cast_alike,
    "aten.to.other": _cast_alike,
    "aten.mean.default": _mean,
    "aten.mean.dim": _mean,
    "aten.nll_loss_forward.default": _nll_loss_forward,
    "aten.nll_loss.default": _nll_loss,
    "aten.nll_loss_nd.default": _nll_loss,
    "aten.cross_entropy_loss.default": _cross_entropy,
}
"""The rewrites by the name of the overload."""


def _emit_single(emit: Emit, call: Call) -> Value:
    (result,) = emit(call)
    assert result is not None, "the only result is computed"
    return result


def _without(emit: Emit, call: Call, name: str) -> Value:
    return _emit_single(emit, evolve(call, arguments={**call.arguments, name: None}))


def _pointwise(call: Call, name: str, arguments: Mapping[str, Any], type_: TensorType) -> Call:
    return evolve(call, name=name, arguments=arguments, types=(type_,), pointwise=True)


def _add(emit: Emit, call: Call, left: Value, right: Value) -> Value:
    (type_,) = call.types
    assert type_ is not None, "the only result is computed"
    return _emit_single(emit, _pointwise(call, "aten.add.Tensor", {"self": left, "other": right, "alpha": 1}, type_))


def _scale(emit: Emit, call: Call, value: Value, factor: Any) -> Value:
    if factor == 1:
        return value
    return _emit_single(emit, _pointwise(call, "aten.mul.Tensor", {"self": value, "other": factor}, _type(value)))


def _view(emit: Emit, call: Call, value: Value, shape: tuple[int, ...]) -> Value:
    type_ = TensorType(shape, _type(value).element_type)
    arguments = {"self": value, "size": list(shape)}
    return _emit_single(
        emit, evolve(call, name="aten.view.default", arguments=arguments, types=(type_,), pointwise=False)
    )


def _cast(emit: Emit, call: Call, value: Value, type_: TensorType) -> Value:
    arguments = {"self": value, "dtype": _dtype(type_)}
    return _emit_single(
        emit, evolve(call, name="aten._to_copy.default", arguments=arguments, types=(type_,), pointwise=False)
    )


def _dtype(type_: TensorType) -> str:
    return f"torch.{DTYPES[type_.element_type]}"


def _type(value: Value) -> TensorType:
    assert isinstance(value.type, TensorType), "operands of operators are tensors"
    return value.type


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.type.shape)


def _rank(value: Any) -> int:
    return len(_shape(value))
