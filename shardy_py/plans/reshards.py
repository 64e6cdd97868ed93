"""Times of all reshardings of tensors of one rank, as a latency and a time per byte.

The time of every collective grows evenly with its bytes, and does not depend on which dimensions are meant. So each
kind of resharding is priced once.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from attrs import field

from shardy_py.plans.graph import Placement
from shardy_py.plans.prices import Prices
from shardy_py.plans.solve import numpy
from shardy_py.values import define

_BYTES = 2.0**30


@define(eq=False)
class ReshardTimes:
    """Times of reshardings.

    Attributes:
        prices: The prices.
    """

    prices: Prices
    _kinds: dict[tuple[int | None, ...], tuple[float, float]] = field(factory=dict)
    _matrices: dict[int, tuple[Any, Any]] = field(factory=dict)

    def seconds(self, rank: int, have: Any, need: Any, sizes: Any, kernels: float = 0.0) -> Any:
        """Return the times from placements, one a row, to others, one a column, of tensors with sizes by column.

        Args:
            rank: The rank of the tensors.
            have: The numbers of the placements that there are, see `numbers_of`.
            need: The numbers of those that are needed.
            sizes: The bytes that are sent.
            kernels: The seconds of the kernels of views behind the tensor, which are charged by what is needed. They
                may run before a gather, divided by more devices, which strict prices take off.
        """
        np = numpy()
        latency, per_byte = self._matrix(rank)
        index = np.ix_(have, need)
        seconds = latency[index] + per_byte[index] * sizes
        if not kernels or not self.prices.is_strict:
            return seconds
        rows, columns = self._sharded_axes(rank, have), self._sharded_axes(rank, need)
        together = self._shard_counts(rows[:, None, :] | columns[None, :, :])
        return np.maximum(0.0, seconds - kernels * (1 / self._shard_counts(columns)[None, :] - 1 / together))

    def copy_sizes(self, rank: int, have: Any, need: Any, sizes: Any) -> Any:
        """Return the bytes of what a device receives; none where it slices what it has.

        Args:
            rank: The rank of the tensors.
            have: The numbers of the placements that there are.
            need: The numbers of those that are needed.
            sizes: The bytes of the whole tensors, by column.
        """
        np = numpy()
        latency, per_byte = self._matrix(rank)
        index = np.ix_(have, need)
        is_sent = (latency[index] > 0) | (per_byte[index] > 0)
        return np.where(is_sent, sizes / self._shard_counts(self._sharded_axes(rank, need)), 0.0)

    def _sharded_axes(self, rank: int, numbers: Any) -> Any:
        """Return for each number of a placement which axes shard a dimension."""
        np, count = numpy(), len(self.prices.axes)
        weights = (rank + 1) ** np.arange(count - 1, -1, -1, dtype=np.int64)
        return np.asarray(numbers, dtype=np.int64)[:, None] // weights % (rank + 1) > 0

    def _shard_counts(self, is_sharded: Any) -> Any:
        return numpy().where(is_sharded, [size for _, size in self.prices.axes], 1).prod(axis=-1)

    def _matrix(self, rank: int) -> tuple[Any, Any]:
        if rank not in self._matrices:
            placements = list(product((None, *range(rank)), repeat=len(self.prices.axes)))
            pairs = [self._kind(have, need) for have in placements for need in placements]
            both = numpy().array(pairs).reshape(len(placements), len(placements), 2)
            self._matrices[rank] = both[:, :, 0], both[:, :, 1]
        return self._matrices[rank]

    def _kind(self, have: Placement, need: Placement) -> tuple[float, float]:
        names: dict[int, int] = {}
        kind = tuple(None if dim is None else names.setdefault(dim, len(names)) for dim in (*have, *need))
        if kind not in self._kinds:
            count = len(have)
            latency = self.prices.reshard_seconds(kind[:count], kind[count:], 0.0)
            self._kinds[kind] = (
                latency,
                (self.prices.reshard_seconds(kind[:count], kind[count:], _BYTES) - latency) / _BYTES,
            )
        return self._kinds[kind]
