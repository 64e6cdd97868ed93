"""Values that become partial results on each device: only one device keeps an element, the others have neutral ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from shardy_py.ir.graph.op_names import REPLICATED_TO_UNREDUCED, SHARDED_TO_UNREDUCED
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.local.regrid import Change, gather
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.shard_positions import shard_positions
from shardy_py.sharding.tensor import ReductionOp, TensorSharding

_COMBINERS: Mapping[ReductionOp, Combiner] = {"sum": Combiner.ADD, "min": Combiner.MIN, "max": Combiner.MAX}


def make_unreduced(shard: Shard) -> Value:
    """Return the partial result that a device has of a value after ``*_to_unreduced``.

    Args:
        shard: The op with its operand on the device.

    Raises:
        CannotLocalize: the element type has no neutral value.
    """
    return _FORMS[shard.op.name](shard, _target(shard))


def keep_on_first(shard: Shard, value: Value, sharding: TensorSharding, axes: Sequence[AxisRef]) -> Value:
    """Return a value on the first device along some axes, and neutral elements on the others.

    Args:
        shard: What emits ops.
        value: The value on the device.
        sharding: The sharding of the partial results, which says how they combine.
        axes: The axes.

    Raises:
        CannotLocalize: the element type has no neutral value.
    """
    if sharding.reduction_op != "sum":
        # The least of several equal elements is that element.
        return value
    ops, emit, shape = shard.ops, shard.emit, tuple(value.shape)
    row = ops.reshape(emit, value, (1, *shape))
    is_first = [int(position == 0) for position in shard_positions(shard.mesh(sharding), axes)]
    masked = ops.mask(emit, row, 0, ops.offset(emit, is_first), _neutral(shard, value, sharding))
    return ops.reshape(emit, masked, shape)


def _replicated_to_unreduced(shard: Shard, target: TensorSharding) -> Value:
    return keep_on_first(shard, shard.operands[0], target, shard.op.attributes["axes"].axes)


def _sharded_to_unreduced(shard: Shard, target: TensorSharding) -> Value:
    """Return neutral elements around the shard, for which nothing is sent; or a gathered value that is masked."""
    axes = shard.op.attributes["axes"].axes_per_dim
    (value,) = shard.operands
    change = Change.between(shard, shard.op.results[0].shape, shard.operand_shardings[0], target)
    placed = _placed(shard, value, target, change, axes)
    if placed is not None:
        return placed
    gathered = gather(shard, value, change, axes, one_by_one=False)
    return keep_on_first(shard, gathered, target, [axis for item in axes for axis in item])


def _placed(
    shard: Shard, value: Value, target: TensorSharding, change: Change, axes: Sequence[Sequence[AxisRef]]
) -> Value | None:
    """Return a shard among neutral elements; None where parts do not nest, or the dialect cannot put it there."""
    dims = [dim for dim, item in enumerate(axes) if item]
    sizes = list(value.shape)
    for dim in dims:
        parts = change.parts(axes[dim])
        if value.shape[dim] * parts != change.size(dim, change.after[dim]):
            return None
        sizes[dim] *= parts
    ops, emit, mesh = shard.ops, shard.emit, shard.mesh(target)
    neutral = _neutral(shard, value, target)
    around = ops.mask(emit, ops.resize(emit, value, sizes), dims[0], 0, neutral)
    starts = []
    for dim, size in enumerate(value.shape):
        positions = shard_positions(mesh, axes[dim]) if axes[dim] else None
        starts.append(ops.offset(emit, None if positions is None else [position * size for position in positions]))
    return ops.update_slice(emit, around, value, starts)


def _neutral(shard: Shard, value: Value, sharding: TensorSharding) -> Value:
    element = value.type.element_type if isinstance(value.type, TensorType) else str(value.type)
    combiner = _COMBINERS[sharding.reduction_op]
    neutral = shard.ops.scalar(shard.emit, element, 0 if combiner is Combiner.ADD else combiner)
    if neutral is None:
        raise no_local_form(f"{element} has no neutral value of {combiner.value}")
    return neutral


def _target(shard: Shard) -> TensorSharding:
    sharding = shard.result_shardings[0]
    if sharding is None:
        raise no_local_form("the op has no out_sharding")
    return sharding


_FORMS: Mapping[str, Callable[[Shard, TensorSharding], Value]] = {
    REPLICATED_TO_UNREDUCED: _replicated_to_unreduced,
    SHARDED_TO_UNREDUCED: _sharded_to_unreduced,
}
TO_UNREDUCED = frozenset(_FORMS)
