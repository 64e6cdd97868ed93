"""Collectives as ops of a dialect of their own, with groups of devices as attributes: for IRs that have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local_ops import Groups, LocalCollective, LocalEmitter, LocalOps, Pairs
from shardy_py.sharding.combiner import Combiner
from shardy_py.values import frozen

_KINDS = ("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_permute")


@frozen
class NamedCollectives(LocalOps):
    """The part of `LocalOps` that makes and reads collectives, such as ``spmd.all_gather``.

    Attributes:
        space: The name of the dialect of the collectives.
    """

    space: ClassVar[str]

    def all_gather(self, emit: LocalEmitter, value: Value, dim: int, groups: Groups) -> Value:
        """Return the shards of each group, joined along a dimension."""
        shape = list(value.shape)
        shape[dim] *= len(groups[0])
        return self.device_op(emit, "all_gather", [value], shape, dim=dim, groups=groups)

    def all_reduce(self, emit: LocalEmitter, value: Value, groups: Groups, combiner: Combiner) -> Value:
        """Return the combination of the values of each group."""
        return self.device_op(emit, "all_reduce", [value], value.shape, groups=groups, combiner=combiner.value)

    def reduce_scatter(self, emit: LocalEmitter, value: Value, dim: int, groups: Groups, combiner: Combiner) -> Value:
        """Return one part per device of the combination of the values of each group."""
        shape = list(value.shape)
        shape[dim] //= len(groups[0])
        return self.device_op(emit, "reduce_scatter", [value], shape, dim=dim, groups=groups, combiner=combiner.value)

    def all_to_all(self, emit: LocalEmitter, value: Value, split_dim: int, concat_dim: int, groups: Groups) -> Value:
        """Return the parts that the devices of each group send each other, joined along a dimension."""
        shape, count = list(value.shape), len(groups[0])
        shape[split_dim] //= count
        shape[concat_dim] *= count
        dims = {"split_dim": split_dim, "concat_dim": concat_dim}
        return self.device_op(emit, "all_to_all", [value], shape, **dims, groups=groups)

    def collective_permute(self, emit: LocalEmitter, value: Value, pairs: Pairs) -> Value:
        """Return the value of the source of each device; zeros where it has none."""
        return self.device_op(emit, "collective_permute", [value], value.shape, groups=tuple(map(tuple, pairs)))

    def dynamic_slice(self, emit: LocalEmitter, value: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        """Return the part of a tensor at a start."""
        return self.device_op(emit, "dynamic_slice", [value, *starts], sizes, sizes=tuple(sizes))

    def read_collective(self, op: Op) -> LocalCollective | None:
        """Return the collective that an op is, or None."""
        space, _, kind = op.name.partition(".")
        if space != self.space or kind not in _KINDS:
            return None
        return LocalCollective(kind, op.results[0].type, tuple(map(tuple, op.attributes["groups"])), op.location)

    def device_op(
        self,
        emit: LocalEmitter,
        kind: str,
        operands: Sequence[Value],
        shape: Sequence[int],
        **attributes: Attribute,
    ) -> Value:
        """Return the result of an op of the dialect, of the element type of its first operand."""
        return emit.op(f"{self.space}.{kind}", operands, [type_like(operands[0], shape)], attributes).result


def type_like(value: Value, shape: Sequence[int]) -> TensorType:
    """Return the type of a tensor of another shape with the elements of a value.

    Raises:
        TypeError: the value is no tensor.
    """
    if not isinstance(value.type, TensorType):
        raise TypeError(f"{value.type} is no tensor")
    return TensorType(tuple(shape), value.type.element_type)
