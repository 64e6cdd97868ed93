"""The data-flow edges of the region ops of sdy: one edge per block argument and one per result.

Mirrors dialect.cc::ManualComputationOp.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache

from attrs import evolve

from shardy_py.ir.graph.program import Op, Value
from shardy_py.plugins import DataFlowShardingTransformType, OpOperand, ShardableDataFlowOpInterface
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding, TensorShardingPerValue


class RegionDataFlow(ShardableDataFlowOpInterface):
    """An op with one region whose operands flow into its arguments and whose terminator flows into its results.

    Every target owns its edge, and every edge has one source.
    """

    def get_block_argument_edge_owners(self, op: Op) -> Sequence[Value]:
        """Return all arguments of the region."""
        return op.regions[0].block.arguments

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return the operand of an argument, or the terminator's operand of a result."""
        if owner.owner is not op:
            return (OpOperand(op, owner.index),)
        terminator = op.regions[0].block.terminator
        return (OpOperand(terminator, owner.index),) if terminator else ()

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value | None:
        """Return the target itself."""
        return target

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value | None:
        """Return the result with the number of the terminator's operand; for an operand of the op, the operand.

        The argument would be the owner there, but the reference answers with the operand, so a change outside does not
        put the edge of an argument back on the worklist. Results depend on that.
        """
        if source.op is op:
            return source.value
        return op.results[source.number] if source.number < len(op.results) else None

    def get_block_argument_edge_owner_shardings(self, op: Op) -> Sequence[TensorSharding]:
        """Return the ``in_shardings``."""
        return _shardings(op, "in_shardings")

    def set_block_argument_edge_owner_shardings(self, op: Op, shardings: Sequence[TensorSharding]) -> None:
        """Set the ``in_shardings``."""
        op.attributes["in_shardings"] = TensorShardingPerValue(tuple(shardings))

    def get_op_result_edge_owner_shardings(self, op: Op) -> Sequence[TensorSharding]:
        """Return the ``out_shardings``."""
        return _shardings(op, "out_shardings")

    def set_op_result_edge_owner_shardings(self, op: Op, shardings: Sequence[TensorSharding]) -> None:
        """Set the ``out_shardings``."""
        op.attributes["out_shardings"] = TensorShardingPerValue(tuple(shardings))


class ManualComputationDataFlow(RegionDataFlow):
    """As `RegionDataFlow`, with axes that are visible outside only.

    In the body the tensors are local along the manual axes, so the arguments carry shardings over the free axes
    alone. The manual axes come first in each dimension.
    """

    def get_block_argument_edge_owner_shardings(self, op: Op) -> Sequence[TensorSharding]:
        """Return the ``in_shardings`` as seen in the body: without the manual axes."""
        manual = _manual_axes(op)
        return tuple(without_manual_axes(sharding, manual) for sharding in _shardings(op, "in_shardings"))

    def set_block_argument_edge_owner_shardings(self, op: Op, shardings: Sequence[TensorSharding]) -> None:
        """Set the free axes of the ``in_shardings``, leaving their manual axes."""
        manual = _manual_axes(op)
        outer = _shardings(op, "in_shardings")
        pairs = zip(outer, shardings, strict=True)
        super().set_block_argument_edge_owner_shardings(
            op, tuple(with_free_axes(old, new, manual) for old, new in pairs)
        )

    def transform_target_sharding(
        self, op: Op, target: Value, sharding: TensorSharding, transform: DataFlowShardingTransformType
    ) -> TensorSharding:
        """Return an argument's sharding as seen outside, or a result's as seen inside; or back again."""
        manual = _manual_axes(op)
        before = transform is DataFlowShardingTransformType.BEFORE_EDGE_PROPAGATION
        if target.is_block_argument != before:
            return without_manual_axes(sharding, manual)
        attribute = "in_shardings" if target.is_block_argument else "out_shardings"
        return with_free_axes(_shardings(op, attribute)[target.index], sharding, manual)

    def should_keep_edge_owner_shardings_divisible(self, op: Op) -> bool:
        """Return true: the local shapes of the body leave no room for padding."""
        return True


@lru_cache(maxsize=8192)
def without_manual_axes(sharding: TensorSharding, manual: frozenset[str]) -> TensorSharding:
    """Return a sharding without its manual axes."""
    if not manual:
        return sharding
    return evolve(
        sharding,
        dim_shardings=tuple(evolve(dim, axes=dim.axes[_count_manual(dim, manual) :]) for dim in sharding.dim_shardings),
        replicated_axes=_free(sharding.replicated_axes, manual),
        unreduced_axes=_free(sharding.unreduced_axes, manual),
    )


@lru_cache(maxsize=8192)
def with_free_axes(outer: TensorSharding, new: TensorSharding, manual: frozenset[str]) -> TensorSharding:
    """Return ``outer`` with its free axes replaced by those of ``new``, open or closed as ``new``.

    Replicated and unreduced axes stay those of ``outer``, as in the reference, which also forgets the reduction.
    """
    pairs = zip(outer.dim_shardings, new.dim_shardings, strict=True)
    return TensorSharding(
        new.mesh,
        tuple(evolve(dim, axes=old.axes[: _count_manual(old, manual)] + dim.axes) for old, dim in pairs),
        outer.replicated_axes,
        outer.unreduced_axes,
    )


def _count_manual(dim: DimensionSharding, manual: frozenset[str]) -> int:
    """Return how many axes at the front are manual.

    Where propagation brings a manual axis in behind a free one the answer depends on how it is searched: by bisection,
    as the reference does it.
    """
    return bisect_left(dim.axes, True, key=lambda axis: axis.name not in manual)


def _free(axes: Iterable[AxisRef], manual: frozenset[str]) -> tuple[AxisRef, ...]:
    return tuple(axis for axis in axes if axis.name not in manual)


def _manual_axes(op: Op) -> frozenset[str]:
    return frozenset(op.attributes["manual_axes"].names)


def _shardings(op: Op, attribute: str) -> tuple[TensorSharding, ...]:
    value = op.attributes.get(attribute)
    return value.shardings if value is not None else ()
