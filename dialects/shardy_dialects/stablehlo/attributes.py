"""Reading the attributes of the dialect, which arrive as text in MLIR's notation.

For example ``#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], ...>``.
"""

from __future__ import annotations

import re
from functools import lru_cache

from shardy_py.ir.graph.attributes import DenseElements, RawAttribute
from shardy_py.ir.graph.program import Op
from shardy_py.values import frozen

_ARRAY = "array<i64"
_INTEGER = re.compile(r"-?\d+")


_LIST = re.compile(r"(\w+)\s*=\s*\[([^\]]*)\]")


_NUMBER = re.compile(r"(\w+)\s*=\s*(-?\d+)")


_CONVOLUTION = re.compile(r"\[([^\]]*)\]\s*x\s*\[([^\]]*)\]\s*->\s*\[([^\]]*)\]")


_ENUM = re.compile(r"#\w+<\s*\w+\s+(\w+)\s*>")


Dims = tuple[int, ...]


@frozen
class DimensionNumbers:
    """The named lists and numbers of a dimension-numbers attribute; what is absent is empty or 0."""

    lists: dict[str, Dims]
    numbers: dict[str, int]

    def dims(self, name: str) -> Dims:
        """Return a list of dimensions."""
        return self.lists.get(name, ())

    def number(self, name: str) -> int:
        """Return a number."""
        return self.numbers.get(name, 0)


@frozen
class ConvolutionDims:
    """The roles of the dimensions of the three tensors of a convolution; spatial ones in the order of their labels."""

    input_batch: int
    input_feature: int
    input_spatial: Dims
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: Dims
    output_batch: int
    output_feature: int
    output_spatial: Dims


@lru_cache(maxsize=4096)
def parse_dimension_numbers(text: str) -> DimensionNumbers:
    """Read the attribute of a dot, gather, scatter or ragged dot.

    >>> numbers = parse_dimension_numbers("#stablehlo.gather<offset_dims = [1, 2], index_vector_dim = 1>")
    >>> numbers.dims("offset_dims"), numbers.number("index_vector_dim"), numbers.dims("collapsed_slice_dims")
    ((1, 2), 1, ())
    """
    lists = {name: tuple(map(int, _INTEGER.findall(body))) for name, body in _LIST.findall(text)}
    return DimensionNumbers(lists, {name: int(number) for name, number in _NUMBER.findall(text)})


@lru_cache(maxsize=1024)
def parse_convolution_dims(text: str) -> ConvolutionDims:
    """Read the dimension numbers of a convolution.

    >>> dims = parse_convolution_dims("#stablehlo.conv<[b, f, 1, 0]x[o, i, 0, 1]->[b, 0, 1, f]>")
    >>> dims.input_feature, dims.input_spatial, dims.kernel_output_feature, dims.output_spatial
    (1, (3, 2), 0, (1, 2))

    Raises:
        ValueError: the text is something else.
    """
    match = _CONVOLUTION.search(text)
    if match is None:
        raise ValueError(f"not the dimension numbers of a convolution: {text}")
    lhs, rhs, out = ([label.strip() for label in group.split(",")] for group in match.groups())
    return ConvolutionDims(
        lhs.index("b"),
        lhs.index("f"),
        _spatial(lhs),
        rhs.index("i"),
        rhs.index("o"),
        _spatial(rhs),
        out.index("b"),
        out.index("f"),
        _spatial(out),
    )


def integer_of(op: Op, name: str, default: int = 0) -> int:
    """Return an attribute that is an integer."""
    number: int = op.attributes.get(name, default)
    return number


def integers_of(op: Op, name: str) -> Dims:
    """Return an attribute that is a list of integers, as MLIR or a local form writes them; () where it is absent."""
    numbers_or_text = op.attributes.get(name)
    if isinstance(numbers_or_text, RawAttribute) and numbers_or_text.text.startswith(_ARRAY):
        return tuple(int(item) for item in numbers_or_text.text.removeprefix(_ARRAY).strip(": >").split(",") if item)
    numbers: Dims = () if numbers_or_text is None else numbers_or_text
    return numbers


def flag_of(op: Op, name: str) -> bool:
    """Return an attribute that is a boolean; false where it is absent."""
    return bool(op.attributes.get(name, False))


def text_of(op: Op, name: str, default: str = "") -> str:
    """Return the text of an attribute."""
    return str(op.attributes.get(name, default))


def dense_of(op: Op, name: str) -> DenseElements | None:
    """Return an attribute that holds the elements of a tensor; None where it is absent."""
    dense: DenseElements | None = op.attributes.get(name)
    return dense


def case_of(op: Op, name: str, default: str = "") -> str:
    """Return the case of an attribute that is an enum."""
    return parse_enum(text_of(op, name, default))


def dimension_numbers_of(op: Op, name: str) -> DimensionNumbers:
    """Return the dimension numbers of an op."""
    return parse_dimension_numbers(text_of(op, name))


def parse_enum(text: str) -> str:
    """Return the case of an enum attribute; a bare word is its own case.

    >>> parse_enum("#stablehlo<transpose NO_TRANSPOSE>")
    'NO_TRANSPOSE'
    """
    match = _ENUM.fullmatch(text.strip())
    return match.group(1) if match else text.strip()


def _spatial(labels: list[str]) -> Dims:
    numbered = sorted((int(label), dim) for dim, label in enumerate(labels) if label.isdigit())
    return tuple(dim for _, dim in numbered)
