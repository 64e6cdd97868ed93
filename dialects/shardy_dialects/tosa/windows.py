"""Ops with windows that move over space: where space is sharded, devices send each other what their windows read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_dialects.tosa.convolution_cost import DepthwiseCost
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.plugins import Dialect, Pure, Shard, no_local_form, with_window
from shardy_py.sharding import einsum
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.unknown_size import is_large
from shardy_py.values import frozen

_GATHERED = [FactorKind.NEED_REPLICATION]


@frozen
class _Family:
    """Ops of one kind.

    Args:
        text: The rule, without zero points.
        kernel: The names of the dimensions of the kernel; none for pools, which have its sizes as an attribute.
        reduction: The dimension that is summed.
        initial: The operand that a sum starts from.
    """

    text: str
    kernel: str = ""
    reduction: str = ""
    initial: int | tuple[int, ...] = ()

    @property
    def space(self) -> list[str]:
        """The names of the dimensions that windows move over, which follow the batch."""
        return [name for name in self.text.split(" -> ")[1].split() if name in "dhw"]

    def rule(self, op: Op) -> OpShardingRule | None:
        """Return the rule of an op, which may have zero points."""
        operands, results = self.text.split(" -> ")
        points = [f"z{number}" for number in range(len(op.operands) - operands.count(",") - 1)]
        moved, replicated = self.space, self.kernel.split()
        # What is sent needs all sizes; the number of elements in a window at the border depends on the padding.
        is_average = op.name == "tosa.avg_pool2d"
        fixed = [name for number, name in enumerate(moved) if is_average and any(_pads(op, number))]
        if not _has_sizes(op):
            fixed = moved
        moved = [name for name in moved if name not in fixed]
        results = " ".join(f"{name}2" if name in fixed else name for name in results.split())
        replicated += [*fixed, *(f"{name}2" for name in fixed)]
        return einsum.rule(
            f"{', '.join([operands, *points])} -> {results}",
            reduction=self.reduction,
            need_replication=replicated,
            permutation=moved,
            initial=self.initial,
        )(op)

    def localize(self, op: Op, shard: Shard) -> Sequence[Value]:
        """Return the op on windows that neighbours have sent, which hold the padding as well.

        Raises:
            CannotLocalize: the kernel is sharded, or there is no element for the padding.
        """
        shard.check_kinds(_GATHERED)
        pads = list(_numbers(op, "pad"))
        for number, reach in enumerate(self._reaches(op)):
            dim = number + 1
            parts, part = shard.parts(shard.result_shardings[0], dim), shard.result_shape()[dim]
            if parts == shard.parts(shard.operand_shardings[0], dim) == 1:
                continue
            step, padding = _numbers(op, "stride")[number], _pads(op, number)
            fill = _fill(op, shard) if any(padding) else None
            starts = [place * part * step - padding[0] for place in range(parts)]
            shard = with_window(shard, 0, dim, starts, (part - 1) * step + reach, fill=fill)
            pads[2 * number : 2 * number + 2] = 0, 0
        return shard.copy() if tuple(pads) == _numbers(op, "pad") else shard.copy(pad=tuple(pads))

    def _reaches(self, op: Op) -> list[int]:
        """Return how many elements a window spans, for each dimension of space."""
        if not self.kernel:
            return list(_numbers(op, "kernel"))
        dims = self.text.split(", ")[1].split()
        sizes = (op.operands[1].shape[dims.index(name)] for name in self.kernel.split())
        return [(size - 1) * step + 1 for size, step in zip(sizes, _numbers(op, "dilation"), strict=True)]


FAMILIES = {
    "conv2d": _Family("n h w c, o k l c, o -> n h w o", "k l", "c", 2),
    "conv3d": _Family("n d h w c, o j k l c, o -> n d h w o", "j k l", "c", 2),
    "depthwise_conv2d": _Family("n h w c, k l c m, (c m) -> n h w (c m)", "k l"),
    "avg_pool2d": _Family("n h w c -> n h w c"),
    "max_pool2d": _Family("n h w c -> n h w c"),
}


def _numbers(op: Op, name: str) -> tuple[int, ...]:
    values: Any = op.attributes[name]
    return tuple(int(item) for item in getattr(values, "values", values))


def _has_sizes(op: Op) -> bool:
    shapes = [static_shape(value.type) for value in op.operands]
    return all(shape is not None and not any(map(is_large, shape)) for shape in shapes)


def _pads(op: Op, number: int) -> tuple[int, int]:
    """Return the padding before and behind a dimension of space."""
    before, behind = _numbers(op, "pad")[2 * number : 2 * number + 2]
    return before, behind


def _fill(op: Op, shard: Shard) -> Value:
    """Return what padding holds: the zero point of a convolution, the smallest number of a pool.

    Raises:
        CannotLocalize: there is no such number.
    """
    pooled = op.name == "tosa.max_pool2d"
    if not pooled and len(op.operands) > 3:
        return shard.ops.reshape(shard.emit, shard.operands[3], ())
    type_ = op.operands[0].type
    value = shard.ops.scalar(shard.emit, type_.element_type, Combiner.MAX if pooled else 0)  # type: ignore[union-attr]
    if value is None or "quantization_info" in op.attributes:
        raise no_local_form(f"it is not known which element of {type_} its padding holds")
    return value


def register(tosa: Dialect) -> None:
    """Define the ops."""
    for name, family in FAMILIES.items():
        cost = DepthwiseCost() if name == "depthwise_conv2d" else None
        tosa.op(f"tosa.{name}", traits=[Pure], rule=family.rule, any_sizes=True, local=family.localize, cost=cost)
