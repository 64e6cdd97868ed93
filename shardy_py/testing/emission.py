"""The numeric check of a scalar body: the kernel of an op against what the op computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from shardy_py.errors import Diagnostic, OptionError, ShardyError
from shardy_py.indexing import IndexingMap
from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.layout.numpy_arrays import numpy_dtype
from shardy_py.plugins import Registry
from shardy_py.plugins.installed import installed_registry
from shardy_py.support.arguments import checked
from shardy_py.testing.numeric.operands import make_generator, make_operand
from shardy_py.testing.ops import TypeLike, make_op, to_type

if TYPE_CHECKING:
    from shardy_py.kernels import Kernel
    from shardy_py.kernels.device import DeviceLike

LAST = "last"
_MOST_POINTS = 1_000_000
_TOLERANCES = {"bfloat16": 2e-2, "float16": 4e-3, "float32": 1e-5, "complex64": 1e-5}
_FLOATS = ("bfloat16", "float16", "float32", "float64")
_WIDER = {"bfloat16": "float32", "float16": "float32", "float32": "float64", "complex64": "complex128"}


@checked
def assert_emits(
    subject: Op | str,
    function: Callable[..., Any],
    operands: Iterable[Any] | None = None,
    results: Iterable[TypeLike] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    *,
    registry: Registry | None = None,
    device: DeviceLike = "h100",
    stages: Sequence[str] = ("initial", LAST),
    on_host: bool = False,
    seed: int = 0,
    rtol: float | None = None,
) -> Kernel:
    """Assert that the kernel of an op computes what a function does.

    The kernel is made of the op's indexing maps and its scalar body, and runs on the interpreter, which also refuses
    accesses outside of tensors, races, and elements that are never written.

    Args:
        subject: An op, or its name.
        function: What the op computes: takes one array per operand, returns an array, or a tuple of several. Floats are
            given in the next wider type.
        operands: One shape, type or array per operand, as for `assert_rule_holds`; those of an op are known.
        results: Shapes or types of the results; by default what the function returns for operands of their own types,
            floats no wider than those.
        attributes: The attributes of the op.
        registry: What is known about the op; by default what the installed plugins say.
        device: The device of the kernel.
        stages: The stages that run, by the names of passes; ``last`` is the one before LLVM.
        on_host: Whether the kernel also runs as machine code of this processor.
        seed: Where random numbers start.
        rtol: The difference that is allowed, relative to the largest element; by default by the type of the result. Of
            integers and booleans none is.

    Returns:
        The kernel.

    Raises:
        AssertionError: a map leads out of an operand, the kernel cannot be made or run, or elements differ.
        OptionError: shapes are missing.
    """
    from shardy_py.kernels import Fusion, emit

    known = registry or installed_registry(skip_broken=True)
    arrays = _arrays(subject, operands, seed)
    op = subject if isinstance(subject, Op) else _op(subject, function, arrays, operands, results, attributes)
    expected = _results(function, [_wide(array) for array in arrays])
    parameters = tuple(dict.fromkeys(op.operands))
    parameter_arrays = [arrays[op.operands.index(value)] for value in parameters]
    try:
        _check_maps(op, known)
        fusion = Fusion(op.name.rpartition(".")[2], parameters, tuple(op.results), known)
        fusion.check()
        kernel = emit(fusion, device=device)
        for stage in stages:
            outputs = kernel.run(*parameter_arrays, stage=None if stage == LAST else stage)
            _compare(op, f"at the stage {stage}", outputs, expected, rtol)
        if on_host:
            _compare(op, "as machine code", kernel.run(*parameter_arrays, on="host"), expected, rtol)
    except ShardyError as error:
        raise AssertionError(f"no kernel computes {_shown(op)}\n{error}") from error
    return kernel


def _arrays(subject: Op | str, operands: Iterable[Any] | None, seed: int) -> list[Any]:
    if operands is None and not isinstance(subject, Op):
        raise OptionError(Diagnostic("missing-shapes", "the check needs the shapes of the operands", op=subject))
    operand_specs = [value.type for value in subject.operands] if operands is None else list(operands)  # type: ignore[union-attr]
    generator = make_generator(seed)
    arrays = []
    for item in operand_specs:
        array, type_ = make_operand(item, generator), to_type(item)
        is_made = not hasattr(item, "__array__") and isinstance(type_, TensorType)
        arrays.append(array.astype(numpy_dtype(type_.element_type)) if is_made else array)  # type: ignore[union-attr]
    return arrays


def _op(
    name: str,
    function: Callable[..., Any],
    arrays: Sequence[Any],
    operands: Iterable[Any] | None,
    results: Iterable[TypeLike] | None,
    attributes: Mapping[str, Attribute] | None,
) -> Op:
    types = _types(_results(function, arrays), arrays) if results is None else list(results)
    return make_op(name, list(operands or ()), types, attributes)


def _types(results: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """Return the types of results; floats that numpy made wider than those of all operands are theirs."""
    floats = [array.dtype for array in arrays if array.dtype.name in _FLOATS]
    widest = max(floats, key=lambda dtype: dtype.itemsize, default=None)
    return [
        item.astype(widest)
        if widest is not None and item.dtype.name in _FLOATS and item.dtype.itemsize > widest.itemsize
        else item
        for item in results
    ]


def _results(function: Callable[..., Any], arrays: Sequence[Any]) -> list[Any]:
    returned = function(*arrays)
    return [np.asarray(item) for item in (returned if isinstance(returned, list | tuple) else (returned,))]


def _wide(array: Any) -> Any:
    """Return an array in the next wider type, where rounding is small."""
    wider = _WIDER.get(array.dtype.name)
    return array if wider is None else array.astype(wider)


def _check_maps(op: Op, registry: Registry) -> None:
    """Check that each map leads to elements that the operand has.

    Raises:
        AssertionError: one does not.
    """
    indexing = registry.get_indexing(op) if op.operands else None
    for number, map_ in enumerate(indexing.output_to_input if indexing is not None else ()):
        if not (map_.is_undefined or map_.is_known_empty or map_.runtimes):
            _check_map(op, number, map_, op.operands[number])


def _check_map(op: Op, number: int, map_: IndexingMap, operand: Value) -> None:
    shape = static_shape(operand.type) or ()
    sizes = [bound.interval.size for bound in (*map_.dims, *map_.ranges)]
    if np.prod(sizes, dtype=float) > _MOST_POINTS:
        return
    lower = [bound.interval.lower for bound in (*map_.dims, *map_.ranges)]
    values = [array + low for array, low in zip(np.indices(sizes), lower, strict=True)]
    count = len(map_.dims)
    holds = np.broadcast_to(map_.holds(values[:count], values[count:]), sizes)
    for dimension, result in enumerate(map_.evaluate(values[:count], values[count:])):
        result = np.broadcast_to(result, sizes)
        wrong = holds & ((result < 0) | (result >= shape[dimension]))
        if wrong.any():
            place = tuple(int(item) for item in np.argwhere(wrong)[0])
            at = ", ".join(str(array[place]) for array in values)
            message = (
                f"the map of operand {number} of {_shown(op)} leads outside: {map_}\n"
                f"  at ({at}) it gives {result[place]} for dimension {dimension}, which has {shape[dimension]} elements"
            )
            raise AssertionError(message)


def _compare(op: Op, where: str, actual: Sequence[Any], expected: Sequence[Any], rtol: float | None) -> None:
    for number, (array, other) in enumerate(zip_longest(actual, expected)):
        if array is None or other is None:
            raise AssertionError(f"{_shown(op)} has {len(actual)} results, the function {len(expected)}")
        if array.shape != other.shape:
            message = f"result {number} of {_shown(op)} has shape {array.shape}, the function gives {other.shape}"
            raise AssertionError(message)
        wrong = _differs(array, other, rtol)
        if wrong.any():
            place = tuple(int(item) for item in np.argwhere(wrong)[0])
            raise AssertionError(
                f"the kernel of {_shown(op)} is wrong {where}: result {number} differs in {int(wrong.sum())} of "
                f"{wrong.size} elements, first at {list(place)}: {array[place]} instead of {other[place]}"
            )


def _differs(array: Any, other: Any, rtol: float | None) -> Any:
    """Return where elements differ by more than is allowed."""
    if array.dtype.kind in "iub":
        return array != other.astype(array.dtype)
    kind = np.complex128 if array.dtype.kind == "c" else np.float64
    left, right = array.astype(kind), other.astype(array.dtype).astype(kind)
    allowed = _TOLERANCES.get(array.dtype.name, 1e-10) if rtol is None else rtol
    finite = np.abs(right[np.isfinite(right)])
    return ~np.isclose(left, right, rtol=0, atol=allowed * max(finite.max(initial=0), 1e-300), equal_nan=True)


def _shown(op: Op) -> str:
    operands = ", ".join(str(value.type) for value in op.operands)
    return f"{op.name!r} of ({operands})"
