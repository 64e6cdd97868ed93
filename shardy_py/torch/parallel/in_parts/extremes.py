"""Places of largest and smallest elements: the extreme of each row and the first place that has it are combined."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.tensor import CLOSED
from shardy_py.torch.parallel.in_parts.writer import OperatorWriter, element_type_of, shape_of, size_of


def place_of_extreme(write: OperatorWriter) -> Sequence[Value] | None:
    """Return the place of the extreme element along a dimension, or among all elements."""
    reduction = _extreme(write)
    if reduction is None:
        return None
    _, place, dims = reduction
    keepdim = bool(write.op.attributes.get("keepdim", False))
    return [place if keepdim else write.squeezed(place, dims)]


def extreme_and_place(write: OperatorWriter) -> Sequence[Value] | None:
    """Return the extreme elements along a dimension, and their places."""
    reduction = _extreme(write)
    if reduction is None:
        return None
    extreme, place, dims = reduction
    if write.op.attributes.get("keepdim", False):
        return [extreme, place]
    return [write.squeezed(extreme, dims), write.squeezed(place, dims)]


def largest_few(write: OperatorWriter) -> Sequence[Value] | None:
    """Return the largest or smallest elements of a row: of those that each part has.

    The dimension is split into the parts and what is in them, of which the first is sharded.
    """
    value, attributes = write.tensor("self"), write.op.attributes
    rank = len(shape_of(value))
    (dim,) = write.dims(rank, default=-1)
    count, parts = int(attributes["k"]), write.parts(value, dim)
    size = shape_of(value)[dim]
    if parts == 1 or size % parts or count > size // parts:
        return None
    sharding = write.program.shardings[value.id]
    items = sharding.dim_shardings
    split = evolve(sharding, dim_shardings=(*items[: dim + 1], CLOSED, *items[dim + 1 :]))
    type_ = element_type_of(value)

    def shape(*inner: int) -> tuple[int, ...]:
        return (*shape_of(value)[:dim], *inner, *shape_of(value)[dim + 1 :])

    viewed = write.call(
        "view.default",
        {"self": value},
        TensorType(shape(parts, size // parts), type_),
        split,
        size=shape(parts, size // parts),
    )
    options = {"k": count, "largest": attributes.get("largest", True), "sorted": attributes.get("sorted", True)}
    types = [TensorType(shape(parts, count), type_), TensorType(shape(parts, count), "i64")]
    values, places = write.calls("topk.default", {"self": viewed}, types, [split, split], dim=dim + 1, **options)
    starts = write.pointwise("mul.Tensor", self=write.numbers(values, dim), other=size // parts)
    places = write.pointwise("add.Tensor", self=places, other=starts)
    gathered_sharding = evolve(sharding, dim_shardings=(*items[:dim], CLOSED, *items[dim + 1 :]))
    flat = shape(parts * count)
    values, places = (
        write.call("view.default", {"self": item}, TensorType(flat, element_type_of(item)), sharding, size=flat)
        for item in (values, places)
    )
    types = [TensorType(shape(count), type_), TensorType(shape(count), "i64")]
    best, numbers = write.calls(
        "topk.default", {"self": values}, types, [gathered_sharding, gathered_sharding], dim=dim, **options
    )
    chosen = write.call("gather.default", {"self": places, "index": numbers}, types[1], gathered_sharding, dim=dim)
    return [best, chosen]


def _extreme(write: OperatorWriter) -> tuple[Value, Value, tuple[int, ...]] | None:
    """Return the extreme elements and their first places, with all dimensions, and the dimensions along which."""
    value = write.tensor("self")
    rank = len(shape_of(value))
    dims = write.dims(rank)
    if not write.is_cut(value, dims):
        return None
    name = "amin" if "min" in write.op.name.split(".")[1] else "amax"
    extreme = write.reduced(f"{name}.default", value, dims)
    is_extreme = write.pointwise("eq.Tensor", "i1", self=value, other=extreme)
    if element_type_of(value) in ("f16", "bf16", "f32", "f64"):
        # NaN counts as extreme.
        is_none = write.pointwise("ne.Tensor", "i1", self=value, other=value)
        is_extreme = write.pointwise("logical_or.default", "i1", self=is_extreme, other=is_none)
    step, numbers = 1, None
    for dim in reversed(dims):
        scaled = write.pointwise("mul.Tensor", self=write.numbers(value, dim), other=step)
        numbers = scaled if numbers is None else write.pointwise("add.Tensor", self=scaled, other=numbers)
        step *= shape_of(value)[dim]
    beyond = size_of(value, dims)
    candidates = write.pointwise("where.ScalarOther", "i64", condition=is_extreme, self=numbers, other=beyond)
    place = write.reduced("amin.default", candidates, dims)
    return extreme, place, dims
