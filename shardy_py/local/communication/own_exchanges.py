"""Bytes that local forms send themselves: a slice its pieces, a look-up its rows, an unfit op all its operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from attrs import field

from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import LocalEmitter, LocalOps, LocalSemantics, Shard
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.local.agreement import disagreeing_factors, parts_by_form
from shardy_py.local.communication.moves import sends_of, shard_bytes
from shardy_py.local.form_collectives import collectives_of_form
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define

_LOCAL = (FactorKind.PASS_THROUGH, FactorKind.REDUCTION)
Shardings = Sequence[TensorSharding | None]


@define(eq=False)
class OwnExchanges:
    """Counts the bytes that local forms send.

    Attributes:
        semantics: What is known about ops.
        ops: The ops for communication.
        mesh: The mesh.
        meshes: All meshes by name.
    """

    semantics: OpSemantics
    ops: LocalOps
    mesh: Mesh
    meshes: dict[str, Mesh]
    _emit: LocalEmitter = field(default=cast(LocalEmitter, None), init=False)
    _forms: LocalSemantics | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        # The check compares all methods, which takes long.
        self._forms = self.semantics if isinstance(self.semantics, LocalSemantics) else None

    def has_form(self, op: Op) -> bool:
        """Return whether an op has a local form of its own."""
        return self._forms is not None and self._forms.get_local(op) is not None

    def sent(self, op: Op, rule: OpShardingRule, operands: Shardings, results: Shardings) -> float:
        """Return the bytes that a device sends in an op under some shardings.

        Args:
            op: The op.
            rule: Its rule.
            operands: The shardings of its operands.
            results: The shardings of its results.
        """
        placed = self._placed(op, operands, results)
        if not any(
            self._is_special(mapping, sharding, rule)
            for mapping, sharding in zip(rule.mappings, (*operands, *results), strict=True)
        ):
            return placed
        has_form = self.has_form(op)
        shard = Shard(op, (), operands, results, self.meshes, self.semantics, self._emit, self.ops)
        by_form = parts_by_form(shard, rule) if has_form else {}
        if disagreeing_factors(shard, rule, has_form=has_form) - by_form.keys():
            return self._gathered(op, operands)
        moving = self._moving_dims(rule, operands[:1])
        if has_form and any(self.ops.exchanged(op, dim, parts) is None for dim, parts in moving):
            return placed + self._sent_by_form(op, operands, results)
        return placed + sum(self._exchanged(op, dim, parts, results) for dim, parts in moving)

    def collected(
        self,
        op: Op,
        rule: OpShardingRule,
        sharding: TensorSharding,
        moved: Sequence[AxisRef],
        results: Shardings,
    ) -> float | None:
        """Return the bytes that a device sends to compute whole results from shards of the first operand.

        Args:
            op: The op.
            rule: Its rule.
            sharding: The sharding of that operand.
            moved: The axes along which the results are whole.
            results: The shardings of the results.

        Returns:
            The bytes; None where the operand has to be whole along these axes.
        """
        if not self.has_form(op):
            return None
        factors = []
        for dim, item in enumerate(sharding.dim_shardings):
            parts = item.sharded_size(self.mesh)
            moved_axes = [axis for axis in item.axes if axis in moved]
            if parts > 1 and not moved_axes and not all(map(rule.is_pass_through, rule.operand_mappings[0][dim])):
                # Elements move along it, too.
                return None
            if parts > 1 and moved_axes:
                factors.append(self.ops.collected(op, dim, parts) if len(moved_axes) == len(item.axes) else None)
        known_factors = [factor for factor in factors if factor is not None]
        if not known_factors or len(known_factors) < len(factors):
            return None
        shards = zip(op.results, results, strict=True)
        return sum(known_factors) * sum(shard_bytes(value.type, result, self.mesh) for value, result in shards)

    def _is_special(
        self, mapping: Sequence[Sequence[int]], sharding: TensorSharding | None, rule: OpShardingRule
    ) -> bool:
        """Return whether a tensor is sharded along anything but a dimension that is handed on, or summed, as it is."""
        if sharding is None or not mapping:
            return False
        for dim, factors in zip(sharding.dim_shardings, mapping, strict=True):
            if not dim.axes or dim.sharded_size(self.mesh) == 1:
                continue
            if len(factors) != 1 or rule.factor_sizes[factors[0]] == 1 or rule.kind(factors[0]) not in _LOCAL:
                return True
        return False

    def _moving_dims(self, rule: OpShardingRule, operands: Shardings) -> list[tuple[int, int]]:
        """Return the sharded dimensions of the first operand along which elements move, with their parts."""
        moving_dims = []
        for mapping, sharding in zip(rule.operand_mappings, operands, strict=False):
            for dim, factors in enumerate(mapping if sharding is not None else ()):
                parts = 1 if sharding is None else sharding.of_dimension(dim).sharded_size(self.mesh)
                if parts > 1 and any(rule.kind(factor) not in _LOCAL for factor in factors):
                    moving_dims.append((dim, parts))
        return moving_dims

    def _placed(self, op: Op, operands: Shardings, results: Shardings) -> float:
        """Return the bytes that a device sends to put operands that are sharded as the result into their place."""
        total, shape = 0.0, static_shape(op.results[0].type) if op.results else None
        for number, sharding in enumerate(operands[1:], 1):
            operand_shape = static_shape(op.operands[number].type)
            if sharding is None or shape is None or operand_shape is None or len(operand_shape) != len(shape):
                continue
            for dim, item in enumerate(sharding.dim_shardings):
                parts = item.sharded_size(self.mesh)
                elements = (
                    self.ops.placed(op, number, dim, parts) if parts > 1 and operand_shape[dim] < shape[dim] else None
                )
                if elements:
                    part = shard_bytes(op.operands[number].type, sharding, self.mesh)
                    total += elements * part / -(-operand_shape[dim] // parts)
        return total

    def _exchanged(self, op: Op, dim: int, parts: int, results: Shardings) -> float:
        elements = self.ops.exchanged(op, dim, parts)
        shape = static_shape(op.results[0].type)
        if not elements or shape is None or dim >= len(shape) or not shape[dim]:
            return 0.0
        size = -(-shape[dim] // parts)
        shards = zip(op.results, results, strict=True)
        return elements / size * sum(shard_bytes(value.type, sharding, self.mesh) for value, sharding in shards)

    def _sent_by_form(self, op: Op, operands: Shardings, results: Shardings) -> float:
        """Return the bytes that a device sends in the collectives of the local form of an op."""
        total = 0.0
        for collective in collectives_of_form(op, operands, results, self.semantics, self.ops):
            devices = len(collective.groups[0])
            factor = {"all_gather": 1 / devices, "reduce_scatter": devices}.get(collective.kind, 1.0)
            total += factor * shard_bytes(collective.type, None, self.mesh) * sends_of(collective, self.mesh.total_size)
        return total

    def _gathered(self, op: Op, operands: Shardings) -> float:
        """Return the bytes that gathering all operands takes."""
        total = 0.0
        for value, sharding in zip(op.operands, operands, strict=True):
            if sharding is not None:
                part = shard_bytes(value.type, sharding, self.mesh)
                count = 1
                for dim in sharding.dim_shardings:
                    count *= dim.sharded_size(self.mesh)
                total += part * (count - 1)
        return total
