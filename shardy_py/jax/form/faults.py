"""Faults of XLA's partitioner that a program in the form for XLA meets; the form goes around none of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from warnings import warn

from attrs import evolve

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.op_names import CONSTANT
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import mesh_of
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import all_ops
from shardy_py.jax.form.constrain_values import closed
from shardy_py.jax.form.faulty_dims import (
    CONVOLUTION,
    convolution_dims,
    dilated_dims,
    dilated_spatial_dims,
    index_vector_dims,
    indices_of,
    overlapping_windows,
    scattered_sum_dims,
    sharded_kernel_dims,
)
from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.exported_ops import RESHARDS
from shardy_py.values import frozen

WRONG_NUMBERS, FAILS = "xla-wrong-numbers", "xla-fails"
"""Codes of faults that the shardings of the program lead to."""
MAY_BE_WRONG, MAY_FAIL = "xla-may-be-wrong", "xla-may-fail"
"""Codes of faults that depend on the data, on XLA's choices, or on the platform."""

_HINT = "leave partitioner='xla' out: a local program needs no partitioner"
_POSSIBLE = {WRONG_NUMBERS: MAY_BE_WRONG, FAILS: MAY_FAIL}
_SLICE = "stablehlo.dynamic_slice"
_INTEGER = re.compile(r"u?i\d+")


def find_faults(program: Program, *, leave_open: bool = False) -> tuple[Diagnostic, ...]:
    """Return an error or a warning for each op that XLA's partitioner is known to compute wrongly, or not at all.

    Args:
        program: A propagated program of several devices, with its shardings in the table.
        leave_open: Whether XLA may shard values without a sharding; what follows from that is a warning.

    Returns:
        Errors where the shardings of the program lead to the fault, with the codes `WRONG_NUMBERS` and `FAILS`;
        warnings where it is possible only.
    """
    shards = _Shards(program, leave_open)
    return tuple(
        evolve(fault, severity="warning") if fault.code in _POSSIBLE.values() else fault
        for op in all_ops(program)
        for check in (*_CHECKS.get(op.name, ()), _uneven_parts)
        for fault in check(shards, op)
    )


def refuse_faults(faults: Sequence[Diagnostic]) -> None:
    """Raise the errors among faults, and give the others to Python's `warnings`.

    Raises:
        UnsupportedError: one is an error.
    """
    errors = [item for item in faults if item.severity == "error"]
    if errors:
        raise UnsupportedError(*errors)
    for item in faults:
        warn(str(item), stacklevel=4)


@frozen
class _Shards:
    """The shardings of values as XLA gets them."""

    program: Program
    leave_open: bool

    def get(self, value: Value) -> TensorSharding | None:
        op = value.defining_op
        if op is not None and op.name in RESHARDS:
            return op.attributes.get(RESHARDS[op.name])
        return self.program.shardings.get(value.id)

    def along(self, value: Value, dims: Collection[int] | None = None) -> bool | None:
        """Return whether a value is sharded along one of some dimensions, or of all; None where XLA decides."""
        sharding = self.get(value)
        if sharding is None or not isinstance(value.type, TensorType):
            return None if self.leave_open and isinstance(value.type, TensorType) and value.shape else False
        return any(sharding.dim_shardings[dim].axes for dim in (range(sharding.rank) if dims is None else dims))

    def fault(self, op: Op, code: str, why: str, *pairs: tuple[Value, Collection[int] | None]) -> Iterator[Diagnostic]:
        """Yield a fault where a value is sharded along one of its dimensions, or may be."""
        are_sharded = [self.along(value, dims) for value, dims in pairs if dims is None or dims]
        if True in are_sharded or None in are_sharded:
            yield _fault(op, code if True in are_sharded else _POSSIBLE.get(code, code), why)


def _fault(op: Op, code: str, why: str, hint: str = _HINT) -> Diagnostic:
    effects = {
        WRONG_NUMBERS: "XLA's partitioner computes wrong numbers",
        FAILS: "XLA's partitioner refuses it or ends the process",
        MAY_BE_WRONG: "XLA's partitioner may compute wrong numbers",
        MAY_FAIL: "XLA may refuse it or end the process",
    }
    return Diagnostic(code, f"{effects[code]}: {why}", op.location, op.name, hint)


def _uneven_parts(shards: _Shards, op: Op) -> Iterator[Diagnostic]:
    """Find unreduced values that are sharded along a dimension which the number of shards does not divide."""
    for value in op.results:
        sharding = shards.get(value)
        if sharding is None or not sharding.unreduced_axes or not isinstance(value.type, TensorType):
            continue
        mesh = mesh_of(sharding, shards.program.meshes)
        sizes = zip(value.type.shape, sharding.dim_shardings, strict=True)
        if any(size is None or size % dim.sharded_size(mesh) for size, dim in sizes):
            yield _fault(op, FAILS, "its result is unreduced, and its shards are uneven")


def _transform(shards: _Shards, op: Op) -> Iterator[Diagnostic]:
    why = "its operand is sharded, and the kernel of host devices takes no layout but its own"
    yield from shards.fault(op, MAY_FAIL, why, (op.operands[0], None), (op.results[0], None))


def _windows(shards: _Shards, op: Op) -> Iterator[Diagnostic]:
    """Find windows, and gaps between elements, along a sharded dimension."""
    if op.name == "stablehlo.select_and_scatter":
        dims, why = overlapping_windows(op), "windows of two strides and more overlap along a sharded dimension"
    else:
        dims = dilated_dims(shards.program, op)
        why = "gaps between elements, or a negative padding, along a sharded dimension"
    tensors = [value for value in (*op.operands, *op.results) if isinstance(value.type, TensorType) and value.shape]
    yield from shards.fault(op, WRONG_NUMBERS, why, *((value, dims) for value in tensors))


def _several_windows(shards: _Shards, op: Op) -> Iterator[Diagnostic]:
    """Find windows over several tensors whose shardings differ."""
    count = len(op.results)
    known = [shards.get(value) for value in (*op.operands[:count], *op.results)]
    if count == 1 or (shards.leave_open and None in known):
        return
    first = next((item for item in known if item is not None), None)
    if first is not None:
        replicated = TensorSharding.fully_closed(first.mesh, first.rank)
        if len({replicated if item is None else closed(item) for item in known}) > 1:
            yield _fault(op, FAILS, "its tensors have different shardings")


def _scattered_sum(shards: _Shards, op: Op) -> Iterator[Diagnostic]:
    why = "the result is sharded along axes of the sum in an order that the operands do not suggest"
    yield from shards.fault(op, WRONG_NUMBERS, why, (op.results[0], scattered_sum_dims(shards.program, op)))


def _convolution(shards: _Shards, op: Op) -> Iterator[Diagnostic]:
    if op.attributes.get("batch_group_count", 1) != 1:
        yield from _batch_groups(shards, op)
    pairs = dilated_spatial_dims(op)
    why = "elements are spread along a sharded spatial dimension, which moves or is cut within a step"
    ends = (op.operands[0], [dim for dim, _ in pairs]), (op.results[0], [dim for _, dim in pairs])
    yield from shards.fault(op, WRONG_NUMBERS, why, *ends)
    why = "the kernel is sharded, and several devices have the same part of a spatial dimension: parts count again"
    yield from shards.fault(op, WRONG_NUMBERS, why, (op.operands[1], sharded_kernel_dims(shards.program, op)))


def _batch_groups(shards: _Shards, op: Op) -> Iterator[Diagnostic]:
    """Find sums of groups of the batch that XLA's partitioner adds up over devices which have the same part."""
    left, right, result = (shards.get(value) for value in (*op.operands, *op.results))
    of_input, of_kernel, of_result = convolution_dims(op)
    if left is not None and right is not None:
        mesh = mesh_of(left, shards.program.meshes)
        along = left.dim_shardings[of_input.index("f")].axes or right.dim_shardings[of_kernel.index("i")].axes
        if along and axes_size(list(left.axes()), mesh) != mesh.total_size:
            yield _fault(op, WRONG_NUMBERS, "features of groups of the batch are sharded along some axes only")
            return
    if result is None:
        return
    features = result.dim_shardings[of_result.index("f")].axes
    of_right = () if right is None else right.dim_shardings[of_kernel.index("o")].axes
    if result.dim_shardings[of_result.index("b")].axes or (right is not None and features != of_right):
        why = "the result for groups of the batch is sharded along its batch, or along features unlike the kernel"
        yield _fault(op, WRONG_NUMBERS, why)


def _indices(shards: _Shards, op: Op) -> Iterator[Diagnostic]:
    why = "indices are sharded along the dimension of their parts"
    yield from shards.fault(op, FAILS, why, (op.operands[indices_of(op)], index_vector_dims(op)))


def _sort_from_the_end(shards: _Shards, op: Op) -> Iterator[Diagnostic]:
    dim = op.attributes.get("dimension", -1)
    if isinstance(dim, int) and dim < 0:
        why = "the dimension of a sort of shards is counted from the end"
        yield from shards.fault(op, WRONG_NUMBERS, why, *((value, None) for value in (*op.operands, *op.results)))


def _set_size(shards: _Shards, op: Op) -> Iterator[Diagnostic]:
    yield _fault(op, FAILS, "the size is known when the program runs, and XLA's Shardy takes static sizes only")


def _starts(shards: _Shards, op: Op) -> Iterator[Diagnostic]:
    """Find slices along sharded dimensions whose start is outside, or may be: the parts on devices do not clamp it."""
    window = op.results[0] if op.name == _SLICE else op.operands[1]
    first = len(op.operands) - len(window.shape)
    for dim, (length, size) in enumerate(zip(op.operands[0].shape, window.shape, strict=True)):
        bounds = _bounds(op.operands[first + dim])
        if length is None or size is None or (bounds is not None and bounds[0] >= 0 and bounds[1] <= length - size):
            continue
        is_outside = bounds is not None and (bounds[1] < 0 or bounds[0] > length - size)
        code = WRONG_NUMBERS if is_outside else MAY_BE_WRONG
        why = f"a start outside of 0 to {length - size} along the sharded dimension {dim} is not clamped"
        ends = ((value, (dim,)) for value in (op.operands[0], op.results[0], window))
        for fault in shards.fault(op, code, why, *ends):
            yield evolve(fault, hint="clamp the start, as jnp.clip does, or leave partitioner='xla' out")


def _bounds(start: Value) -> tuple[int, int] | None:
    """Return the least and the greatest number that a start may be; None where nothing is known of it."""
    op = start.defining_op
    if op is None:
        return None
    if op.name == "stablehlo.clamp":
        low, high = _bounds(op.operands[0]), _bounds(op.operands[2])
        return None if low is None or high is None else (low[0], high[1])
    value = op.attributes.get("value") if op.name in ("stablehlo.constant", CONSTANT) else None
    if not isinstance(value, DenseElements) or len(value.values) != 1 or not _is_integer(start):
        return None
    return int(value.values[0]), int(value.values[0])


def _is_integer(value: Value) -> bool:
    return isinstance(value.type, TensorType) and _INTEGER.fullmatch(value.type.element_type) is not None


_CHECKS: Mapping[str, tuple[Callable[[_Shards, Op], Iterator[Diagnostic]], ...]] = {
    "stablehlo.fft": (_transform,),
    "stablehlo.select_and_scatter": (_windows,),
    "stablehlo.pad": (_windows,),
    "stablehlo.reduce_window": (_windows, _several_windows),
    "stablehlo.dot_general": (_scattered_sum,),
    CONVOLUTION: (_scattered_sum, _convolution),
    "stablehlo.gather": (_indices,),
    "stablehlo.scatter": (_indices,),
    "stablehlo.sort": (_sort_from_the_end,),
    "stablehlo.set_dimension_size": (_set_size,),
    _SLICE: (_starts,),
    "stablehlo.dynamic_update_slice": (_starts,),
}
"""The checks of each op with known faults."""
