"""The factor shardings of one op, and how they differ from what its tensors have.

Mirrors explicit_reshards_util.cc::getCompatibleFactorShardings.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field

from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.axis_lists import any_overlap, greatest_common_prefix
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import Axes, FactorSharding, TensorFactorShardings, project, unproject
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define


@define
class OpProjection:
    """The factor shardings of all tensors of an op.

    Attributes:
        rule: The rule of the op.
        mesh: The mesh all shardings are on, the order of devices aside.
        tensors: Operands, then results.
        changed: Which tensors have other factor shardings than at first.
    """

    rule: OpShardingRule
    mesh: Mesh
    tensors: list[TensorFactorShardings]
    changed: list[bool] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.changed = [False] * len(self.tensors)

    @classmethod
    def build(cls, rule: OpShardingRule, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> OpProjection:
        """Return the projection of shardings, operands first; a missing one counts as closed."""
        sizes = rule.factor_sizes
        pairs = zip(shardings, rule.mappings, strict=True)
        tensors = [project(sharding, mapping, sizes, mesh, closed_if_missing=True) for sharding, mapping in pairs]
        return cls(rule, mesh, tensors)

    def axes(self, tensor: int, factor: int) -> Axes | None:
        """Return the axes of a tensor along a factor, or None where it does not have the factor."""
        entry = self.tensors[tensor].factors.get(factor)
        return None if entry is None else entry.axes

    def common_axes(self, factor: int) -> Axes | None:
        """Return the axes of a factor if all tensors that have it agree on them, else None."""
        common: Axes | None = None
        for tensor in self.tensors:
            entry = tensor.factors.get(factor)
            if entry is None:
                continue
            if common is not None and common != entry.axes:
                return None
            common = entry.axes
        return common or ()

    def has_overflow_axes(self, tensor: int) -> bool:
        """Return whether some axes of a tensor do not fit its factors."""
        return any(entry.overflow_axes for entry in self.tensors[tensor].factors.values())

    def sharding_size(self, tensor: int) -> int:
        """Return the number of parts a tensor is split into."""
        entries = self.tensors[tensor].factors.values()
        size = 1
        for entry in entries:
            size *= axes_size(entry.axes, self.mesh) * axes_size(entry.overflow_axes, self.mesh)
        return size

    def update(self, factor: int, axes: Axes) -> None:
        """Shard a factor along ``axes`` in all tensors that have it, without overflow axes."""
        for number, tensor in enumerate(self.tensors):
            entry = tensor.factors.get(factor)
            if entry is None or (entry.axes == axes and not entry.overflow_axes):
                continue
            entry.axes, entry.overflow_axes = axes, ()
            self.changed[number] = True

    def sharding(self, tensor: int, mesh_name: str | Mesh) -> TensorSharding:
        """Return the sharding of a tensor."""
        mapping = self.rule.mappings[tensor]
        factors = self.tensors[tensor].factors
        for dim in mapping:
            for factor in dim:
                # Factors after overflow axes do not exist; once those axes are gone, they are not sharded.
                factors.setdefault(factor, FactorSharding())
        return unproject(self.tensors[tensor], mapping, self.rule.factor_sizes, mesh_name, self.mesh)

    def greatest_common_prefixes(self) -> list[Axes]:
        """Return for every factor the axes with which the axes of all its tensors start."""
        result: list[Axes | None] = [None] * self.rule.num_factors
        for tensor in self.tensors:
            for factor, entry in tensor.factors.items():
                known = result[factor]
                result[factor] = entry.axes if known is None else greatest_common_prefix(known, entry.axes)
        return [axes or () for axes in result]


def compatible_axes(projection: OpProjection) -> list[Axes] | None:
    """Return the axes of every factor if the op can run as it is sharded, else None.

    That is, all tensors agree on every factor, no factor that needs replication is sharded, and no axis shards two
    factors.

    Mirrors explicit_reshards_util.cc::getCompatibleFactorShardings.
    """
    rule = projection.rule
    result: list[Axes] = []
    seen: Axes = ()
    for factor in range(rule.num_factors):
        axes = projection.common_axes(factor)
        if axes is None or any_overlap(axes, seen):
            return None
        if axes and factor in rule.need_replication_factors:
            return None
        result.append(axes)
        seen += axes
    return result
