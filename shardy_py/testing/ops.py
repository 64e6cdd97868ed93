"""One op by itself, made from its name, shapes and attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.attributes import Attribute, RawAttribute
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import OpaqueType, TensorType, Type, tensor
from shardy_py.support.arguments import as_integer, checked, shown
from shardy_py.support.element_types import ARRAY_ELEMENT_TYPES

TypeLike = Type | Iterable[int]
"""A type; or the sizes of an ``f32`` tensor; or anything with ``shape`` and ``dtype``, such as an array."""


def to_type(type_like: Any) -> Type:
    """Return the type that a shape, a type or an array stands for.

    >>> str(to_type((8, 4))), str(to_type(()))
    ('tensor<8x4xf32>', 'tensor<f32>')
    >>> import ml_dtypes, numpy
    >>> str(to_type(numpy.zeros(8, ml_dtypes.float8_e4m3fn)))
    'tensor<8xf8E4M3FN>'

    Raises:
        OptionError: it is none of these.
    """
    if isinstance(type_like, TensorType | OpaqueType):
        return type_like
    if hasattr(type_like, "dtype") and hasattr(type_like, "shape"):
        return tensor(*type_like.shape, dtype=ARRAY_ELEMENT_TYPES.get(str(type_like.dtype), str(type_like.dtype)))
    if isinstance(type_like, str) or not isinstance(type_like, Iterable):
        raise _no_shape(type_like)
    sizes = tuple(type_like)
    if any(size is not None and (as_integer(size) is None or size < 0) for size in sizes):
        raise _no_shape(sizes)
    return tensor(*sizes)


def _no_shape(type_like: Any) -> OptionError:
    hint = "give the sizes, such as (8, 4), a type, or an array"
    return OptionError(Diagnostic("invalid-shape", f"{shown(type_like)} is no shape", hint=hint))


@checked
def make_op(
    name: str,
    operands: Iterable[TypeLike] = (),
    results: Iterable[TypeLike] = (),
    attributes: Mapping[str, Attribute] | None = None,
) -> Op:
    """Return an op that stands alone in a function of its own; its operands are the function's arguments.

    An op with regions, or one whose rule looks at its neighbours, is built with `shardy_py.ir.Builder` instead.

    Args:
        name: The full name.
        operands: One shape or type per operand, see `to_type`.
        results: The same for the results.
        attributes: The attributes as plain Python; a text that starts with ``#`` is an attribute in MLIR's notation.

    >>> op = make_op("toy.matmul", [(8, 4), (4, 2)], [(8, 2)])
    >>> [value.shape for value in op.operands], op.result.shape
    ([(8, 4), (4, 2)], (8, 2))
    """
    builder = Builder()
    with builder.function("main", [to_type(type_like) for type_like in operands]) as values:
        op = builder.emit(name, values, [to_type(result_like) for result_like in results], _decoded(attributes or {}))
        builder.return_(*op.results)
    return op


def _decoded(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {
        name: RawAttribute(value) if isinstance(value, str) and value.startswith("#") else value
        for name, value in attributes.items()
    }
