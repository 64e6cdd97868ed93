"""Arguments of a compiled module: checked against its types, then distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.guards.error_texts import describe_error
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.layout.numpy_arrays import numpy_dtype
from shardy_py.support.element_types import xla_element_type
from shardy_py.values import frozen

_NO_INDEX = "XLA has no index: make it a tensor of i64"


@frozen
class ArrayType:
    """The global shape and the numpy dtype of an argument or result; -1 stands for a dynamic size."""

    shape: tuple[int, ...]
    dtype: Any

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join('?' if size < 0 else str(size) for size in self.shape)}]"


TOKEN = "!stablehlo.token"
"""The type of what orders effects."""


def array_values(values: Sequence[Value]) -> list[Value]:
    """Return the arguments or results of a function that are arrays, and no tokens."""
    return [value for value in values if str(value.type) != TOKEN]


def array_types(values: Sequence[Value], kind: str) -> tuple[ArrayType, ...]:
    """Return the array types of the arguments or results of a function.

    Args:
        values: The values.
        kind: What messages call one of them: ``argument`` or ``result``.

    Raises:
        UnsupportedError: one is not a tensor of a static shape, or numpy has no dtype for its elements.
    """
    return tuple(_array_type(value, f"{kind} {value.index}") for value in values)


def refuse_index(values: Sequence[Value], kind: str) -> None:
    """Check that XLA takes the elements of the arguments or results of a function: it has no type index.

    Args:
        values: The values.
        kind: What messages call one of them.

    Raises:
        UnsupportedError: one has such elements.
    """
    for value in values:
        if isinstance(value.type, TensorType) and value.type.element_type == "index":
            raise _no_array(value, f"{kind} {value.index}", _NO_INDEX)


def _array_type(value: Value, name: str) -> ArrayType:
    type_ = value.type
    if not isinstance(type_, TensorType) or not type_.is_static or type_.text != _plain(type_):
        hint = "only tensors of static shapes go in and out"
        if isinstance(type_, TensorType) and not type_.is_static:
            hint += "; give a size as by --size arg0.0=64"
        raise _no_array(value, name, _NO_INDEX if str(type_) == "index" else hint)
    if xla_element_type(type_.element_type) is None:
        raise _no_array(value, name, "give its elements a type that numpy has, such as i32 or f32")
    return ArrayType(value.shape, numpy_dtype(type_.element_type))


def _no_array(value: Value, name: str, hint: str) -> UnsupportedError:
    message = f"{name} of the main function has the type {value.type}, which no array of JAX has"
    function = value.owning_op
    return UnsupportedError(Diagnostic("no-array-type", message, function.location, function.name, hint))


def _plain(type_: TensorType) -> str:
    return TensorType(type_.shape, type_.element_type).text


def as_numpy(value: Any, number: int) -> Any:
    """Return an argument as an array of numpy.

    Args:
        value: What a caller gives.
        number: The number of the argument.

    Raises:
        OptionError: numpy cannot convert it.
    """
    import numpy

    try:
        return numpy.asarray(value)
    except Exception as error:
        message = f"argument {number} is no array: {describe_error(error)}"
        raise OptionError(Diagnostic("argument-type", message, hint="give an array of numpy")) from error


def place(number: int, value: Any, type_: ArrayType, sharding: Any, *, is_donated: bool = False) -> Any:
    """Return an argument as a JAX array that is distributed as the module wants it.

    Args:
        number: The number of the argument.
        value: A numpy array, a JAX array (distributed or not), a key of `jax.random`, or a number for a scalar.
        type_: What the module wants.
        sharding: The `NamedSharding` it wants.
        is_donated: Whether results may take its memory; only an array that is distributed so already gives its own.

    Raises:
        OptionError: the array has another shape or dtype, or belongs to other processes' devices.
    """
    import jax
    import numpy

    array = _as_array(value, type_, number)
    check_type(array, type_, number)
    if isinstance(array, jax.Array):
        _check_alive(array, number)
    if isinstance(array, jax.Array) and array.sharding.is_equivalent_to(sharding, array.ndim):
        return array
    if is_donated:
        # On host devices JAX would share the memory of the given array.
        array = numpy.array(array)
    return jax.device_put(array, sharding)


def check_array(array: Any, type_: ArrayType, number: int) -> Any:
    """Return an array of JAX that lies as a program wants it.

    Args:
        array: The array.
        type_: What the program wants.
        number: The number of the argument.

    Raises:
        OptionError: it has another shape or dtype, or is gone.
    """
    check_type(array, type_, number)
    _check_alive(array, number)
    return array


def is_placed(value: Any, type_: ArrayType, sharding: Any) -> bool:
    """Return whether JAX takes an argument as it is: an array on its devices or not committed to any, or a number.

    Args:
        value: An argument of a call.
        type_: What the program wants.
        sharding: The sharding it wants.
    """
    import jax

    if not isinstance(value, jax.Array):
        return isinstance(value, (bool, int, float, complex)) and not type_.shape and _fits(value, type_.dtype)
    is_alike = tuple(value.shape) == type_.shape and value.dtype == type_.dtype and not value.is_deleted()
    return is_alike and (not value.committed or value.sharding.is_equivalent_to(sharding, value.ndim))


def as_traced(value: Any, type_: ArrayType, number: int) -> Any:
    """Return an argument as an array, or as a value that JAX traces.

    Args:
        value: The argument of a call while JAX traces.
        type_: What the program wants.
        number: The number of the argument.

    Raises:
        OptionError: it has another shape or dtype.
    """
    import jax

    array = jax.numpy.asarray(_as_array(value, type_, number))
    check_type(array, type_, number)
    return array


def _check_alive(array: Any, number: int) -> None:
    if array.is_deleted():
        message = f"argument {number} is an array that was deleted, or donated to a call before"
        raise OptionError(Diagnostic("argument-deleted", message, hint="give a new array"))


def check_type(array: Any, type_: ArrayType, number: int) -> None:
    """Check that an array is of a type, with any size in the place of a dynamic one.

    Args:
        array: The array.
        type_: What the program wants.
        number: The number of the argument.

    Raises:
        OptionError: it has another shape or dtype.
    """
    if tuple(array.shape) == type_.shape and array.dtype == type_.dtype:
        return
    array_type = ArrayType(tuple(array.shape), array.dtype)
    is_alike = array_type.dtype == type_.dtype and len(array_type.shape) == len(type_.shape)
    if not is_alike or any(size not in (-1, new) for size, new in zip(type_.shape, array_type.shape, strict=True)):
        message = f"argument {number} is {type_}, given is {array_type}"
        raise OptionError(Diagnostic("argument-type", message, hint="shapes are global; convert it with astype"))


def _as_array(value: Any, type_: ArrayType, number: int) -> Any:
    """Return an argument as an array with a shape and a dtype of numpy."""
    import jax
    import numpy

    if isinstance(value, jax.Array):
        return jax.random.key_data(value) if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key) else value
    if not isinstance(value, (bool, int, float, complex)) or type_.shape:
        return as_numpy(value, number)
    return numpy.asarray(value).astype(type_.dtype) if _fits(value, type_.dtype) else numpy.asarray(value)


def _fits(number: complex, dtype: Any) -> bool:
    """Return whether a dtype holds a number of Python: one of the same kind, or of a wider one."""
    import jax

    kinds = [jax.numpy.bool_, jax.numpy.integer, jax.numpy.floating, jax.numpy.complexfloating]
    (dtype_kind,) = [index for index, kind in enumerate(kinds) if jax.dtypes.issubdtype(dtype, kind)]
    # NumPy's and JAX's own numbers are of classes below Python's.
    number_kind = next(index for index, kind in enumerate((bool, int, float, complex)) if isinstance(number, kind))
    if not number_kind or not dtype_kind:
        return number_kind == dtype_kind
    if isinstance(number, int) and dtype_kind == 1:
        limits = jax.numpy.iinfo(dtype)
        return bool(limits.min <= number <= limits.max)
    return number_kind <= dtype_kind
