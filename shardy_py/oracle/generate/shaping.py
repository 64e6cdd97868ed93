"""Features ``transpose``, ``reshape``, ``broadcast``, ``reverse``, ``bitcast``: moving elements around."""

from __future__ import annotations

from math import prod

from shardy_py.oracle.generate.choices import Choices
from shardy_py.oracle.generate.program import BlockBuilder, array

_WIDTHS = {"f32": 32, "i32": 32, "ui32": 32, "bf16": 16, "f16": 16, "i8": 8, "f64": 64, "i64": 64, "ui64": 64}


def transpose(block: BlockBuilder) -> None:
    """A permutation of the dimensions."""
    value = block.value(low=2)
    permutation = block.choices.shuffled(list(reversed(range(value.rank))))
    result = tuple(value.dims[dim] for dim in permutation)
    block.op("stablehlo.transpose", [value], [(result, value.dtype)], {"permutation": array(permutation)})


def prime_factors(number: int) -> list[int]:
    """Return the prime factors of a number, each as often as it divides it."""
    factors, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors


def regrouped(choices: Choices, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return another shape with as many elements: prime factors in order, grouped anew, sometimes swapped."""
    factors = [factor for size in shape for factor in prime_factors(size)]
    if choices.chance(20):
        factors = choices.shuffled(factors)
    result: list[int] = []
    for factor in factors:
        if result and (len(result) >= 5 or choices.chance(55)):
            result[-1] *= factor
        else:
            result.append(factor)
    if choices.chance(20):
        result.insert(choices.integer(0, len(result)), 1)
    return tuple(result)


def reshape(block: BlockBuilder) -> None:
    """A reshape: two neighbours merged, one dimension split, or everything grouped anew."""
    value = block.value(low=1)
    shape = list(value.dims)
    kind = block.choices.pick(("merge", "split", "regroup", "back"))
    if 0 in shape:
        kind = "merge"
    if kind == "back":
        other = block.find(lambda item: prod(item.dims) == prod(shape) and item.dims != value.dims)
        shape = list(other.dims) if other else list(reversed(shape))
    elif kind == "merge" and len(shape) > 1:
        dim = block.choices.integer(0, len(shape) - 2)
        shape[dim : dim + 2] = [shape[dim] * shape[dim + 1]]
    elif kind == "split" and any(size > 1 for size in shape):
        dim = block.choices.pick([dim for dim, size in enumerate(shape) if size > 1])
        part = block.choices.pick([size for size in range(1, shape[dim] + 1) if shape[dim] % size == 0])
        shape[dim : dim + 1] = [part, shape[dim] // part]
    elif kind == "regroup":
        shape = list(regrouped(block.choices, tuple(shape)))
    block.op("stablehlo.reshape", [value], [(tuple(shape), value.dtype)])


def broadcast(block: BlockBuilder) -> None:
    """New dimensions in between, and size-one dimensions expanded."""
    choices = block.choices
    value = block.value(high=3)
    target = block.find(lambda item: item.rank >= value.rank and item.dtype == value.dtype)
    rank = value.rank + choices.integer(0, max(0, 4 - value.rank))
    dims = choices.some(range(rank), low=value.rank, high=value.rank)
    if choices.chance(15):
        dims = choices.shuffled(dims)
    shape = [choices.pick(block.module.sizes) for _ in range(rank)]
    if target is not None and target.rank == rank and choices.chance(50):
        shape = list(target.dims)
    for dim, size in zip(dims, value.dims, strict=True):
        shape[dim] = shape[dim] if size == 1 else size
    block.op(
        "stablehlo.broadcast_in_dim", [value], [(tuple(shape), value.dtype)], {"broadcast_dimensions": array(dims)}
    )


def reverse(block: BlockBuilder) -> None:
    """Some dimensions backwards."""
    value = block.value(low=1)
    dims = block.choices.some(range(value.rank), low=1)
    block.op("stablehlo.reverse", [value], [(value.shape, value.dtype)], {"dimensions": array(dims)})


def bitcast(block: BlockBuilder) -> None:
    """The same bits as elements of the same width, or of a width up to eight times less or more."""
    value = block.value(lambda item: item.dtype in _WIDTHS)
    target = block.choices.pick(tuple(_WIDTHS))
    before, after = _WIDTHS[value.dtype], _WIDTHS[target]
    result = value.dims
    if before > after:
        result = (*result, before // after)
    elif before < after:
        result = block.module.shape(low=0, high=3)
        value = block.tensor((*result, after // before), value.dtype)
    block.op("stablehlo.bitcast_convert", [value], [(result, target)])


EMITTERS = {
    "transpose": ((4, transpose),),
    "reshape": ((6, reshape),),
    "broadcast": ((5, broadcast),),
    "reverse": ((1, reverse),),
    "bitcast": ((1, bitcast),),
}
