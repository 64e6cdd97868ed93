"""Costs of convolutions.

As in XLA's hlo_cost_analysis.cc::GetConvolutionFlops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, prod

from shardy_dialects.stablehlo.attributes import dense_of, integer_of, integers_of, parse_convolution_dims, text_of
from shardy_dialects.stablehlo.costs import LibraryCost, element_types
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import TensorType
from shardy_py.plugins import OpShapes, OpWork, Window
from shardy_py.sharding.rule_builder import tensor_shape
from shardy_py.support.element_types import mlir_element_bits
from shardy_py.values import frozen

_SMALL_FEATURES = 16
"""The number of features that the library leaves to others."""


class ConvolutionCost(LibraryCost):
    """A convolution: products with padding and with the holes of a dilated input do not count."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return two operations per product."""
        dims = parse_convolution_dims(text_of(op, "dimension_numbers"))
        _, kernel = shapes.operands[:2]
        out = shapes.results[0]
        full_shape = tensor_shape(op.results[0])
        pairs = 1.0
        for dim, out_dim in zip(spatial_dims(op), dims.output_spatial, strict=True):
            # A shard has its share of the windows; which of them meet padding differs between shards.
            pairs *= dim.valid_pairs() * out[out_dim] / max(1, full_shape[out_dim])
        window = prod(kernel[dim] / max(1, tensor_shape(op.operands[1])[dim]) for dim in dims.kernel_spatial)
        features = out[dims.output_feature]
        flops = 2.0 * pairs * window * kernel[dims.kernel_input_feature] * features * out[dims.output_batch]
        # A shard of the features has the groups of these.
        groups = int(integer_of(op, "batch_group_count", 1)) * features // max(1, full_shape[dims.output_feature])
        if groups < 2 or groups != features:
            return OpWork(flops)
        return OpWork(flops, ungrouped=_ungrouped(groups, flops, prod(shapes.operands[0]), prod(out), _width(op)))

    def _is_in_library(self, op: Op, shapes: OpShapes) -> bool:
        """Return whether it has two spatial dimensions and features last, is large enough, and dilates no input."""
        text = text_of(op, "dimension_numbers").replace(" ", "")
        is_usual = text.removeprefix("#stablehlo.conv<").removesuffix(">") == "[b,0,1,f]x[0,1,i,o]->[b,0,1,f]"
        if not is_usual or int(integer_of(op, "batch_group_count", 1)) != 1:
            return False
        if element_types(op) not in ({"f32"}, {"f64"}) or any(op.attributes.get("window_reversal") or ()):
            return False
        (_, *inputs, features), (*kernel, _, _), (_, *outputs, results) = *shapes.operands[:2], shapes.results[0]
        is_large = max(features, results) > _SMALL_FEATURES
        is_inside = all(max(pair) <= size for size, *pair in zip(inputs, kernel, outputs, strict=True))
        return is_large and is_inside and all(dim.input_dilation == 1 for dim in spatial_dims(op))

    def get_windows(self, op: Op) -> Sequence[Window]:
        """Return the window of each spatial dimension."""
        return tuple(_windows(op))


def spatial_dims(op: Op) -> Iterator[ConvolutionDim]:
    """Yield the window along each spatial dimension of a convolution, in the order of their labels."""
    dims = parse_convolution_dims(text_of(op, "dimension_numbers"))
    lhs, rhs, out = (tensor_shape(value) for value in (op.operands[0], op.operands[1], op.results[0]))
    count = len(dims.input_spatial)
    padding = dense_of(op, "padding")
    values = () if padding is None else padding.values
    low = values[::2] if len(values) == 2 * count else tuple(values[:1]) * count or (0,) * count
    ones = (1,) * count
    strides = integers_of(op, "window_strides") or ones
    input_dilation = integers_of(op, "lhs_dilation") or ones
    kernel_dilation = integers_of(op, "rhs_dilation") or ones
    for index in range(count):
        yield ConvolutionDim(
            lhs[dims.input_spatial[index]],
            rhs[dims.kernel_spatial[index]],
            out[dims.output_spatial[index]],
            strides[index],
            low[index],
            input_dilation[index],
            kernel_dilation[index],
        )


def _windows(op: Op) -> Iterator[Window]:
    dims = parse_convolution_dims(text_of(op, "dimension_numbers"))
    for dim, input_dim, out_dim in zip(spatial_dims(op), dims.input_spatial, dims.output_spatial, strict=True):
        size = (dim.kernel_size - 1) * dim.kernel_dilation + 1
        yield Window(0, input_dim, out_dim, size, dim.stride, dim.low, dim.input_dilation)


@frozen
class ConvolutionDim:
    """The window of a convolution along one spatial dimension."""

    input_size: int
    kernel_size: int
    output_size: int
    stride: int
    low: int
    input_dilation: int
    kernel_dilation: int

    def valid_pairs(self) -> int:
        """Return the number of pairs of a kernel and an output element that meet an element of the input.

        The pair of elements k and o meets the place ``o * stride + k * kernel_dilation - low``, which has an element
        where the dilation of the input divides it. Whether it does repeats with k; of the elements of the kernel that
        agree in that, every so many outputs meet one.
        """
        dilation, stride = self.input_dilation, self.stride
        period = dilation // gcd(self.kernel_dilation, dilation)
        divisor = gcd(stride, dilation)
        step = dilation // divisor
        last = (self.input_size - 1) * dilation
        total = 0
        for kernel in range(min(period, self.kernel_size)):
            offset = kernel * self.kernel_dilation - self.low
            if offset % divisor:
                continue
            output = -offset // divisor * pow(stride // divisor, -1, step) % step
            offset += output * stride
            kernels = count_from(kernel, period, self.kernel_size), period * self.kernel_dilation
            outputs = count_from(output, step, self.output_size), step * stride
            total += count_pairs(kernels, outputs, last - offset) - count_pairs(kernels, outputs, -1 - offset)
        return total


def count_from(first: int, step: int, end: int) -> int:
    """Return the number of places from the first one to an end, each a step behind the one before."""
    return max(0, -(-(end - first) // step))


def count_pairs(kernels: tuple[int, int], outputs: tuple[int, int], limit: int) -> int:
    """Return the number of pairs (k, o), each counted from zero, with ``k * a + o * b <= limit``.

    Args:
        kernels: How many k there are, and a.
        outputs: How many o there are, and b.
        limit: The limit.
    """
    (count, a), (size, b) = kernels, outputs
    if limit < 0 or not size:
        return 0
    # The first k meet all outputs, and those from the end on none.
    end = min(count, limit // a + 1)
    complete = min(end, max(0, (limit - (size - 1) * b) // a + 1))
    rest = end - complete
    # The sum of (limit - k * a) // b + 1 over the k between, from the last one back.
    return complete * size + rest + sum_of_floors(rest, b, a, limit - (end - 1) * a)


def sum_of_floors(count: int, divisor: int, slope: int, start: int) -> int:
    """Return the sum of ``(slope * i + start) // divisor`` for the i below a count, by Euclid's algorithm.

    >>> sum_of_floors(4, 3, 2, 1) == 1 // 3 + 3 // 3 + 5 // 3 + 7 // 3
    True
    """
    total = 0
    while count > 0:
        total += count * (count - 1) // 2 * (slope // divisor) + count * (start // divisor)
        slope, start = slope % divisor, start % divisor
        top = slope * count + start
        # The places under the line, counted along the other direction.
        count, start, slope, divisor = top // divisor, top % divisor, divisor, slope
    return total


def _ungrouped(groups: int, flops: float, input_elements: int, elements: int, width: int) -> OpWork:
    """Return the work of a convolution whose groups of the batch, one for each feature, become one.

    As in XLA's convolution_group_converter.cc::HandleBatchGroupCount: all groups meet all features; of the result a
    comparison, a selection and a sum keep the groups that meet their own. It is written and read before and after.
    """
    all_pairs = groups * elements
    selection_flops = 3 * all_pairs - elements
    return OpWork(
        groups * flops + selection_flops,
        reads={0: float(input_elements + 4 * all_pairs)},
        temporary_bytes=float(all_pairs * width),
    )


def _width(op: Op) -> int:
    """Return the bytes of an element of the result."""
    type_ = op.results[0].type
    bits = mlir_element_bits(type_.element_type) if isinstance(type_, TensorType) else None
    return -(-(bits or 0) // 8)
