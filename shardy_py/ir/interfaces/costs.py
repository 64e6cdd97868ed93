"""The interface for costs of ops that do not follow from their sharding rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from attrs import Factory

from shardy_py.ir.graph.program import Op
from shardy_py.values import frozen

COLLECTIVES = (
    "all_gather",
    "all_reduce",
    "reduce_scatter",
    "all_to_all",
    "collective_permute",
    "collective_broadcast",
)


@frozen
class OwnCollective:
    """The collective that an op of the program stands for.

    Args:
        kind: ``all_gather``, ``all_reduce``, ``reduce_scatter``, ``all_to_all``, ``collective_permute`` or
            ``collective_broadcast``.
        group: The numbers of the devices of one group; the others look alike.
        share: The part of all devices that send: of a permutation some may keep what they have, or send nothing.
    """

    kind: str
    group: tuple[int, ...]
    share: float = 1.0


Shape = tuple[int, ...]
Part = tuple[str, tuple[int, ...]]
"""A computation by itself: its name, and the numbers of the operands that it takes."""


@frozen
class OpShapes:
    """The shapes of the tensors of an op: global ones, or those of the shards on a device.

    Args:
        operands: Those of the operands; () for what is not a tensor of known size.
        results: Those of the results.
    """

    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]


@frozen
class OpWork:
    """The work of an op on tensors of given shapes.

    Args:
        flops: The operations, without transcendental ones.
        transcendentals: The transcendental operations, such as exponentials.
        reads: Operand number to the elements that are read of it, for those that are not read as a whole.
        writes: Result number to the elements that are written of it, for those that are not written as a whole.
        tables: The numbers of the operands that are read at indices that other data gives.
        temporary_bytes: The bytes in memory while it runs besides its operands and results.
        ungrouped: The work where a compiler computes all groups together and drops most of it, if that is other work.
        expanded: The work where a compiler makes loops of the op rather than call a library, if that is other work.
    """

    flops: float = 0.0
    transcendentals: float = 0.0
    reads: Mapping[int, float] = Factory(dict)
    writes: Mapping[int, float] = Factory(dict)
    tables: tuple[int, ...] = ()
    temporary_bytes: float = 0.0
    ungrouped: OpWork | None = None
    expanded: OpWork | None = None


@frozen
class Window:
    """The window of an op along a dimension that may be sharded: where it reads across the bounds of shards.

    Args:
        operand: The number of the operand that it reads.
        operand_dim: The dimension of the operand.
        result_dim: The dimension of the first result.
        size: The number of elements of a window, from the first to the last.
        stride: The distance from one window to the next.
        low: The padding before the first element.
        dilation: The distance of an element of the operand from the next; more than 1 where holes are between them.
        is_padded: Whether there is padding where it reads outside of the operand.
        is_joined: Whether a shard and what comes in are joined for the op; otherwise its user joins them.
    """

    operand: int
    operand_dim: int
    result_dim: int
    size: int
    stride: int = 1
    low: int = 0
    dilation: int = 1
    is_padded: bool = True
    is_joined: bool = True


class CostOpInterface(Protocol):
    """The cost of an op, from its dialect; each method has a default."""

    def get_flops(self, op: Op) -> float | None:
        """Return the number of operations of the unsharded op; None to derive it from its rule.

        What one device does of them follows from the rule: the shares of all factors.
        """
        return None

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork | None:
        """Return the work of the op on tensors of the given shapes; None to derive it from `get_flops` or the rule."""
        return None

    def is_fusible(self, op: Op) -> bool:
        """Return whether a compiler computes the op within the kernel that uses its result. Default: by its traits."""
        return False

    def is_expensive(self, op: Op) -> bool:
        """Return whether a compiler stores the result rather than compute the op in each kernel that uses it.

        Ops with transcendental operations are stored anyway. Default: by these alone.
        """
        return False

    def is_branching(self, op: Op) -> bool:
        """Return whether kernels compute the op in branches, as they do joined tensors. Default: they do not.

        A compiler stores what more than one place of a kernel would compute so.
        """
        return False

    def is_repeated(self, op: Op) -> bool:
        """Return whether a compiler recomputes the op where an equal op was computed. Default: False."""
        return False

    def get_equal_operand(self, op: Op) -> int | None:
        """Return the number of the operand that the result equals, as that of ``x + 0`` does. Default: None."""
        return None

    def get_library_operands(self, op: Op, shapes: OpShapes) -> Sequence[int] | None:
        """Return the operands whose makers a library of kernels, as compilers use on CPUs, may compute with the op.

        It does so from a reduction on, which it has as well. None if it does not have the op. Default: it has none.
        """
        return None

    def get_parts(self, op: Op) -> Sequence[Part | None]:
        """Return, for each result, a computation that produces this result only, or None.

        Where an op of one result computes what a result of an op of several is, a compiler takes the latter. Default:
        none.
        """
        return ()

    def get_updated_operand(self, op: Op) -> int | None:
        """Return the number of the operand that the result is but for a part that the op writes. Default: None."""
        return None

    def get_overwritten_operands(self, op: Op) -> Sequence[int]:
        """Return, for each result, the number of the operand that it is written over where nothing else needs that.

        Default: the operand that `get_updated_operand` returns, if there is one.
        """
        updated = self.get_updated_operand(op)
        return () if updated is None else (updated,)

    def get_choices(self, op: Op) -> tuple[int, int] | None:
        """Return the numbers of two operands from which each element of the result is chosen. Default: None."""
        return None

    def get_windows(self, op: Op) -> Sequence[Window]:
        """Return the windows through which the op reads elements of other shards. Default: none."""
        return ()

    def get_mirrored_dims(self, op: Op) -> Sequence[int]:
        """Return the dimensions along which the result has the elements of the first operand in reverse order.

        Shards along them change devices. Default: none.
        """
        return ()

    def get_region_runs(self, op: Op) -> Sequence[float | None]:
        """Return the number of runs of each region per run of the op; None for an unknown number.

        A region that may run or not counts as a fraction. Default: each region runs once.
        """
        return [1.0] * len(op.regions)

    def get_collective(self, op: Op) -> OwnCollective | None:
        """Return the collective that the op is; None for none."""
        return None
