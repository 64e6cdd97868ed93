"""Sizes of results that are computed: from integers that the program makes of sizes, or from windows and joined parts.

Such are the programs that `jax.export` writes for symbolic shapes. Static forms are as those of the upstream pass
stablehlo-canonicalize-dynamism.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from math import prod

from shardy_dialects.stablehlo.attributes import case_of, dense_of, integer_of, integers_of
from shardy_dialects.stablehlo.local.literals import array
from shardy_dialects.stablehlo.local.new_ops import create
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, static_shape, tensor
from shardy_py.ir.interfaces.result_sizes import (
    Numbers,
    NumbersOf,
    ResultSizes,
    SizesOf,
    constant_sizes,
    has_few_integers,
    truncated_quotient,
    wrapped_integer,
)

Static = Callable[[Op], Value]
_ASSERTION = "shape_assertion"


_ARITHMETIC: Mapping[str, Callable[..., int]] = {
    "stablehlo.abs": abs,
    "stablehlo.add": operator.add,
    "stablehlo.and": operator.and_,
    "stablehlo.clamp": lambda low, number, high: min(max(low, number), high),
    "stablehlo.convert": lambda number: number,
    "stablehlo.divide": truncated_quotient,
    "stablehlo.maximum": max,
    "stablehlo.minimum": min,
    "stablehlo.multiply": operator.mul,
    "stablehlo.negate": operator.neg,
    "stablehlo.not": lambda number: 1 - number,
    "stablehlo.or": operator.or_,
    "stablehlo.remainder": lambda first, second: first - second * truncated_quotient(first, second),
    "stablehlo.select": lambda condition, first, second: first if condition else second,
    "stablehlo.sign": lambda number: (number > 0) - (number < 0),
    "stablehlo.subtract": operator.sub,
}
_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    name.upper(): getattr(operator, name) for name in ("eq", "ge", "gt", "le", "lt", "ne")
}


def _op(name: str, operands: Sequence[int] = (), attributes: Mapping[str, Attribute] | None = None) -> Static:
    """Return what builds an op of some of the operands."""
    return lambda op: create(op, name, [op.operands[number] for number in operands], attributes or {})


def _known(numbers: Numbers | None) -> tuple[int, ...] | None:
    """Return elements all of which are known."""
    known = tuple(number for number in numbers or () if number is not None)
    return None if numbers is None or len(known) < len(numbers) else known


def _shape(value: Value) -> tuple[int | None, ...]:
    """Return the sizes of a value, None for those that are not known."""
    return value.type.shape if isinstance(value.type, TensorType) else ()


def _arithmetic(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    operands = [numbers_of(value) for value in op.operands] if has_few_integers(op) else [None]
    known = [numbers for numbers in operands if numbers is not None]
    if len(known) < len(operands):
        return None
    count, element_type = max(map(len, known)), getattr(op.results[0].type, "element_type", "")
    if op.name == "stablehlo.compare":
        function: Callable[..., int] = _COMPARISONS[case_of(op, "comparison_direction")]
    elif op.name == "stablehlo.not" and element_type != "i1":
        function = operator.invert
    else:
        function = _ARITHMETIC[op.name]
    columns = [numbers * count if len(numbers) == 1 else numbers for numbers in known]
    try:
        numbers = [None if None in row else int(function(*row)) for row in zip(*columns, strict=True)]
    except ZeroDivisionError:
        return None
    return ResultSizes(numbers=tuple(item if item is None else wrapped_integer(item, element_type) for item in numbers))


def _dimension_size(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    size = _shape(op.operands[0])[integer_of(op, "dimension")]
    return None if size is None else ResultSizes(numbers=(size,))


def _reshape(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    return ResultSizes(numbers=numbers_of(op.operands[0])) if has_few_integers(op) else None


def _broadcast(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    numbers = numbers_of(op.operands[0]) if has_few_integers(op) else None
    if numbers is None or len(numbers) != 1:
        return None
    return ResultSizes(numbers=numbers * prod(static_shape(op.results[0].type) or ()))


def _concatenate(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    dim = integer_of(op, "dimension")
    sizes = [_shape(value)[dim] for value in op.operands]
    known = [size for size in sizes if size is not None]
    shape = [next((size for size in column if size is not None), None) for column in _columns(op)]
    shape[dim] = sum(known) if len(known) == len(sizes) else None
    parts = [(value, static_shape(value.type)) for value in op.operands]
    if dim > 0 or not has_few_integers(op) or any(part is None for _, part in parts):
        return ResultSizes(shape)
    # Along the first dimension the elements of parts follow each other.
    rows = (numbers_of(value) or (None,) * prod(part or ()) for value, part in parts)
    return ResultSizes(shape, tuple(chain.from_iterable(rows)))


def _columns(op: Op) -> list[tuple[int | None, ...]]:
    return list(zip(*(_shape(value) for value in op.operands), strict=True))


def _slice(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    is_line = has_few_integers(op) and len(_shape(op.results[0])) == 1
    numbers = numbers_of(op.operands[0]) if is_line else None
    if numbers is None:
        return None
    start, limit, stride = (integers_of(op, name)[0] for name in ("start_indices", "limit_indices", "strides"))
    return ResultSizes(numbers=numbers[start:limit:stride])


def _as_operand(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    return ResultSizes(_shape(op.operands[0]))


def _pad(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    low, high, interior = (integers_of(op, f"{name}_padding{end}") for name, end in _PADDING)
    return ResultSizes(_padded(op.operands[0], low, high, interior))


_PADDING = (("edge", "_low"), ("edge", "_high"), ("interior", ""))


def _padded(value: Value, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> list[int | None]:
    rows = zip(_shape(value), low, high, interior, strict=True)
    return [
        None if size is None else before + size + max(size - 1, 0) * between + after
        for size, before, after, between in rows
    ]


def _dynamic_pad(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    low, high, interior = (_known(numbers_of(value)) for value in op.operands[2:5])
    if low is None or high is None or interior is None:
        return None
    attributes = {
        f"{name}_padding{end}": value for (name, end), value in zip(_PADDING, (low, high, interior), strict=True)
    }
    return ResultSizes(_padded(op.operands[0], low, high, interior), static=_op("stablehlo.pad", (0, 1), attributes))


def _real_dynamic_slice(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    unknown = (None,) * len(_shape(op.results[0]))
    starts, limits, strides = (numbers_of(value) or unknown for value in op.operands[1:4])
    rows = zip(starts, limits, strides, strict=True)
    shape = [None if None in row else max(0, -(-(row[1] - row[0]) // row[2])) for row in rows]  # type: ignore[operator]
    all_starts, all_limits, all_strides = _known(starts), _known(limits), _known(strides)
    if all_starts is None or all_limits is None or all_strides is None:
        return ResultSizes(shape, static=_dynamic_slice if all_strides == (1,) * len(shape) else None)
    attributes = {"start_indices": all_starts, "limit_indices": all_limits, "strides": all_strides}
    arrays = {name: array(numbers) for name, numbers in attributes.items()}
    return ResultSizes(shape, static=_op("stablehlo.slice", (0,), arrays))


def _dynamic_slice(op: Op) -> Value:
    """Build a slice of known sizes from starts along one dimension, which may differ from run to run."""
    line, starts = op.operands[1], []
    element_type = getattr(line.type, "element_type", "i64")
    for dim in range(len(op.results[0].shape)):
        bounds = {"start_indices": array([dim]), "limit_indices": array([dim + 1]), "strides": array([1])}
        row = create(op, "stablehlo.slice", [line], bounds, tensor(1, dtype=element_type))
        starts.append(create(op, "stablehlo.reshape", [row], {}, tensor(dtype=element_type)))
    sizes = {"slice_sizes": array(op.results[0].shape)}
    return create(op, "stablehlo.dynamic_slice", [op.operands[0], *starts], sizes)


def _dynamic_broadcast(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    attributes = {"broadcast_dimensions": array(integers_of(op, "broadcast_dimensions"))}
    return _of_shape(numbers_of(op.operands[1]), _op("stablehlo.broadcast_in_dim", (0,), attributes))


def _dynamic_reshape(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    sizes = _of_shape(numbers_of(op.operands[1]), _op("stablehlo.reshape", (0,)))
    return _reshape(op, numbers_of) if sizes is None else sizes


def _dynamic_iota(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    attributes = {"iota_dimension": op.attributes["iota_dimension"]}
    return _of_shape(numbers_of(op.operands[0]), _op("stablehlo.iota", (), attributes))


def _of_shape(shape: Numbers | None, static: Static) -> ResultSizes | None:
    return None if shape is None else ResultSizes(shape, static=static)


def _dynamic_gather(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    sizes = _known(numbers_of(op.operands[2]))
    if sizes is None:
        return None
    attributes = {name: value for name, value in op.attributes.items() if not name.startswith("sdy.")}
    return ResultSizes(
        _gathered(op, sizes), static=_op("stablehlo.gather", (0, 1), {**attributes, "slice_sizes": array(sizes)})
    )


def _gather(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    return ResultSizes(_gathered(op, integers_of(op, "slice_sizes")))


def _gathered(op: Op, sizes: Sequence[int]) -> list[int | None]:
    """Return the shape of the result of a gather: the sizes of windows, and those of the indices around them."""
    from shardy_dialects.stablehlo.attributes import dimension_numbers_of

    numbers = dimension_numbers_of(op, "dimension_numbers")
    left_out = {*numbers.dims("collapsed_slice_dims"), *numbers.dims("operand_batching_dims")}
    windows = iter([size for dim, size in enumerate(sizes) if dim not in left_out])
    vector = numbers.number("index_vector_dim")
    batch = iter([size for dim, size in enumerate(_shape(op.operands[1])) if dim != vector])
    offsets = set(numbers.dims("offset_dims"))
    return [next(windows if dim in offsets else batch) for dim in range(len(_shape(op.results[0])))]


def _reduce_window(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    shape = _shape(op.operands[0])
    window = integers_of(op, "window_dimensions")
    padding = dense_of(op, "padding")
    edges = [0] * (2 * len(shape)) if padding is None else _repeated(list(map(int, padding.values)), 2 * len(shape))
    return ResultSizes(
        [
            _window_count(size, extent, *row)
            for size, extent, *row in zip(
                shape,
                window,
                edges[::2],
                edges[1::2],
                *(
                    integers_of(op, name) or (1,) * len(shape)
                    for name in ("window_strides", "base_dilations", "window_dilations")
                ),
                strict=True,
            )
        ]
    )


def _repeated(numbers: list[int], count: int) -> list[int]:
    return numbers * count if len(numbers) == 1 else numbers


def _window_count(
    size: int | None, extent: int, low: int, high: int, stride: int, base: int, dilation: int
) -> int | None:
    """Return at how many places a window lies in a padded dimension."""
    if size is None:
        return None
    padded = low + (0 if size == 0 else (size - 1) * base + 1) + high
    covered = (extent - 1) * dilation + 1
    return 0 if padded < covered else (padded - covered) // stride + 1


def _convolution(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    padding = dense_of(op, "padding")
    return _convolved(op, None if padding is None else list(map(int, padding.values)))


def _dynamic_conv(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    padding = _known(numbers_of(op.operands[2]))
    if padding is None:
        return None
    from shardy_py.ir.graph.attributes import RawAttribute

    rows = ", ".join(f"[{low}, {high}]" for low, high in zip(padding[::2], padding[1::2], strict=True))
    text = RawAttribute(f"dense<[{rows}]> : tensor<{len(padding) // 2}x2xi64>")
    attributes = {name: value for name, value in op.attributes.items() if not name.startswith("sdy.")}
    sizes = _convolved(op, list(padding))
    return ResultSizes(
        None if sizes is None else sizes.shape,
        static=_op("stablehlo.convolution", (0, 1), {**attributes, "padding": text}),
    )


def _convolved(op: Op, padding: list[int] | None) -> ResultSizes | None:
    from shardy_dialects.stablehlo.attributes import parse_convolution_dims

    dims = parse_convolution_dims(str(op.attributes["dimension_numbers"]))
    count = len(dims.input_spatial)
    edges = [0] * (2 * count) if padding is None else _repeated(padding, 2 * count)
    shape: list[int | None] = list(_shape(op.results[0]))
    lhs, rhs = _shape(op.operands[0]), _shape(op.operands[1])
    groups = integer_of(op, "batch_group_count", 1)
    batch = lhs[dims.input_batch]
    shape[dims.output_batch] = None if batch is None else batch // groups
    shape[dims.output_feature] = rhs[dims.kernel_output_feature]
    names = ("window_strides", "lhs_dilation", "rhs_dilation")
    rows = [integers_of(op, name) or (1,) * count for name in names]
    for number, (source, kernel, target) in enumerate(
        zip(dims.input_spatial, dims.kernel_spatial, dims.output_spatial, strict=True)
    ):
        extent, window = rhs[kernel], [row[number] for row in rows]
        if extent is not None:
            shape[target] = _window_count(
                lhs[source], extent, edges[2 * number], edges[2 * number + 1], window[0], window[1], window[2]
            )
    return ResultSizes(shape)


def _custom_call(op: Op, numbers_of: NumbersOf) -> ResultSizes | None:
    """Check an assertion about sizes.

    Raises:
        OptionError: it does not hold.
    """
    if op.attributes.get("call_target_name") != _ASSERTION or not op.operands:
        return None
    numbers = [numbers_of(value) for value in op.operands]
    if numbers[0] is None or numbers[0][0] is None:
        return ResultSizes(equal=_compared_sizes(op.operands[0]))
    if not numbers[0][0]:
        message = str(op.attributes.get("error_message", "an assertion about sizes does not hold"))
        for position, values in enumerate(numbers[1:]):
            message = message.replace(f"{{{position}}}", "?" if values is None else str(values[0]))
        raise OptionError(Diagnostic("size-conflict", message, op.location, op.name, "give other sizes"))
    return ResultSizes(is_met=True)


def _compared_sizes(condition: Value) -> list[tuple[Value, int]]:
    """Return the two dimensions that a condition says are one size."""
    compare = condition.defining_op
    if compare is None or compare.name != "stablehlo.compare" or case_of(compare, "comparison_direction") != "EQ":
        return []
    sides = [value.defining_op for value in compare.operands]
    reads = [side for side in sides if side is not None and side.name == "stablehlo.get_dimension_size"]
    return [(read.operands[0], integer_of(read, "dimension")) for read in reads] if len(reads) == len(sides) else []


SIZES: Mapping[str, SizesOf] = {
    **dict.fromkeys((*_ARITHMETIC, "stablehlo.compare"), _arithmetic),
    **dict.fromkeys(
        (
            "stablehlo.dynamic_update_slice",
            "stablehlo.reverse",
            "stablehlo.scatter",
            "stablehlo.select_and_scatter",
            "stablehlo.sort",
        ),
        _as_operand,
    ),
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": constant_sizes,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dynamic_broadcast_in_dim": _dynamic_broadcast,
    "stablehlo.dynamic_conv": _dynamic_conv,
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.dynamic_iota": _dynamic_iota,
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_reshape": _dynamic_reshape,
    "stablehlo.gather": _gather,
    "stablehlo.get_dimension_size": _dimension_size,
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.reshape": _reshape,
    "stablehlo.slice": _slice,
}
"""The sizes of results by op name."""
