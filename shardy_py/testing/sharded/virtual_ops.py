"""The ops of virtual devices for communication, and the numpy scalars that fill what no shard holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import evolve

from shardy_py.errors import UnsupportedError
from shardy_py.ir.graph.program import Block, Op, Region, Value
from shardy_py.ir.graph.types import TensorType, Type, tensor
from shardy_py.ir.interfaces.local import Groups, LocalEmitter, LocalOps, Pairs, Shard
from shardy_py.layout.numpy_arrays import numpy_dtype
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.shard_moves import Windows, covered, plan_rounds
from shardy_py.sharding.shard_positions import replica_groups
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.testing.numeric.pieces import Array
from shardy_py.values import frozen


def scalar_array(element_type: str, number: Combiner | float) -> Array | None:
    """Return a scalar; None where the element type has no such number.

    Args:
        element_type: The element type.
        number: The number, or the combiner whose neutral value it shall be.

    Raises:
        UnsupportedError: numpy has no dtype for the element type.
    """
    dtype = numpy_dtype(element_type)
    value = neutral_value(number, dtype) if isinstance(number, Combiner) else number
    if value is None or (dtype.kind in "biu" and value != value):
        return None
    return np.array(value, dtype)


def neutral_value(combiner: Combiner, dtype: Any) -> Any:
    """Return the number that changes nothing it is combined with, or None.

    Args:
        combiner: The combiner.
        dtype: The dtype of the elements.
    """
    if combiner in (Combiner.ADD, Combiner.MUL):
        return int(combiner is Combiner.MUL)
    if dtype.kind == "b":
        return combiner in (Combiner.AND, Combiner.MIN)
    if combiner in (Combiner.AND, Combiner.OR):
        return None if dtype.kind not in "iu" else 0 if combiner is Combiner.OR else ~np.zeros((), dtype)
    if dtype.kind not in "iu":
        return None if dtype.kind == "c" else np.inf if combiner is Combiner.MIN else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if combiner is Combiner.MIN else limits.min


def poison(dtype: Any) -> Any:
    """Return an element that no program may look at."""
    if dtype.kind in "biu":
        return True if dtype.kind == "b" else np.iinfo(dtype).max
    return np.nan


SPACE = "virtual"
ON_DEVICE = f"{SPACE}.on_device"


@frozen
class VirtualOps(LocalOps):
    """Local ops of the virtual devices; their attributes are Python values."""

    def all_gather(self, emit: LocalEmitter, value: Value, dim: int, groups: Groups) -> Value:
        """Return the shards of each group, joined along a dimension."""
        shape = list(value.shape)
        shape[dim] *= len(groups[0])
        return _emit(emit, "all_gather", [value], _like(value, shape), dim=dim, groups=groups)

    def all_reduce(self, emit: LocalEmitter, value: Value, groups: Groups, combiner: Combiner) -> Value:
        """Return the combination of the values of each group."""
        return _emit(emit, "all_reduce", [value], value.type, groups=groups, combiner=combiner)

    def reduce_scatter(self, emit: LocalEmitter, value: Value, dim: int, groups: Groups, combiner: Combiner) -> Value:
        """Return one part per device of the combination of the values of each group."""
        shape = list(value.shape)
        shape[dim] //= len(groups[0])
        type_ = _like(value, shape)
        return _emit(emit, "reduce_scatter", [value], type_, dim=dim, groups=groups, combiner=combiner)

    def all_to_all(self, emit: LocalEmitter, value: Value, split_dim: int, concat_dim: int, groups: Groups) -> Value:
        """Return the parts that the devices of each group send each other, joined along a dimension."""
        shape = list(value.shape)
        shape[split_dim] //= len(groups[0])
        shape[concat_dim] *= len(groups[0])
        dims = {"split_dim": split_dim, "concat_dim": concat_dim}
        return _emit(emit, "all_to_all", [value], _like(value, shape), groups=groups, **dims)

    def collective_permute(self, emit: LocalEmitter, value: Value, pairs: Pairs) -> Value:
        """Return the value of the source of each device; zeros where it has none."""
        return _emit(emit, "collective_permute", [value], value.type, pairs=tuple(pairs))

    def offset(self, emit: LocalEmitter, table: Sequence[int] | None) -> Value:
        """Return the scalar that a table has for the device; 0 without a table."""
        return _emit(emit, "offset", [], tensor(dtype="i64"), table=None if table is None else tuple(table))

    def dynamic_slice(self, emit: LocalEmitter, value: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        """Return the part of a tensor at a start."""
        return _emit(emit, "dynamic_slice", [value, *starts], _like(value, sizes), sizes=tuple(sizes))

    def reshape(self, emit: LocalEmitter, value: Value, shape: Sequence[int]) -> Value:
        """Return the elements in another shape."""
        return _emit(emit, "reshape", [value], _like(value, shape), shape=tuple(shape))

    def transpose(self, emit: LocalEmitter, value: Value, permutation: Sequence[int]) -> Value:
        """Return the tensor with its dimensions in another order."""
        type_ = _like(value, [value.shape[dim] for dim in permutation])
        return _emit(emit, "transpose", [value], type_, permutation=tuple(permutation))

    def resize(self, emit: LocalEmitter, value: Value, shape: Sequence[int]) -> Value:
        """Return a tensor cut or extended at the high ends of its dimensions."""
        return _emit(emit, "resize", [value], _like(value, shape), shape=tuple(shape))

    def mask(self, emit: LocalEmitter, value: Value, dim: int, count: Value | int, fill: Value) -> Value:
        """Return a tensor with a scalar in the place of all but the first elements along a dimension."""
        if isinstance(count, int):
            return _emit(emit, "mask", [value, fill], value.type, dim=dim, count=count)
        return _emit(emit, "mask", [value, fill, count], value.type, dim=dim)

    def scalar(self, emit: LocalEmitter, element_type: str, number: Combiner | float) -> Value | None:
        """Return a constant scalar; None where the element type has no such number."""
        try:
            array = scalar_array(element_type, number)
        except UnsupportedError:
            return None
        return None if array is None else _emit(emit, "scalar", [], tensor(dtype=element_type), number=array)

    def windows(
        self,
        shard: Shard,
        value: Value,
        dim: int,
        sharding: TensorSharding,
        windows: Windows,
        fill: Value | None = None,
    ) -> Value | None:
        """Return what each device needs of a dimension."""
        shape = list(value.shape)
        shape[dim] = windows.size
        rounds = plan_rounds(windows.held, windows.starts, windows.size)
        kind = "own_window" if all(item.is_local for item in rounds) else "windows"
        groups = replica_groups(shard.mesh(sharding), sharding.of_dimension(dim).axes)
        window = _emit(shard.emit, kind, [value], _like(value, shape), dim=dim, groups=groups, windows=windows)
        if fill is None:
            return window
        limits = covered(rounds, len(windows.starts))
        table = tuple(limits[position] for position in shard.positions(sharding, dim))
        return _emit(shard.emit, "outside", [window, fill], window.type, dim=dim, table=table)

    def constant(self, emit: LocalEmitter, op: Op, type_: TensorType) -> Value | None:
        """Return nothing: every constant is made whole, and then cut."""
        return None

    def whole_constant(self, emit: LocalEmitter, op: Op) -> Value:
        """Return the constant of an op as it is."""
        return emit.op_like(op, (), [op.results[0].type]).result

    def on_device(
        self, emit: LocalEmitter, device: int, types: Sequence[Type], run: Callable[[LocalEmitter], Sequence[Value]]
    ) -> Sequence[Value]:
        """Return what ops give that run on one device only; the others have zeros."""
        inside = evolve(emit, block=Block(emit.program))
        inside.op(f"{SPACE}.return", run(inside))
        region = Region([inside.block])
        return emit.op(ON_DEVICE, (), types, {"device": device}, [region]).results


def _emit(emit: LocalEmitter, kind: str, operands: Sequence[Value], type_: object, **attributes: object) -> Value:
    return emit.op(f"{SPACE}.{kind}", operands, [type_], attributes).result  # type: ignore[list-item]


def _like(value: Value, shape: Sequence[int]) -> TensorType:
    if not isinstance(value.type, TensorType):
        raise TypeError(f"{value.type} is not a tensor")
    return TensorType(tuple(shape), value.type.element_type)
