"""State of a search for collectives: the difference between the current sharding and the target.

Axes are split where others start and end, so that any two that overlap are equal.

Mirrors reshard_to_collectives.cc::CollectiveInserter and utils.cc::alignSubAxesByDecomposition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import field

from shardy_py.sharding.axes import AxisRef, SubAxis, add_axis_or_merge, axes_size
from shardy_py.sharding.axis_lists import axis_order_key
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.values import define

AxesPerDim = list[list[AxisRef]]


def align(axes_per_dim: AxesPerDim, others: Iterable[AxisRef], mesh: Mesh) -> None:
    """Split every axis in place where one of ``others``, which do not overlap each other, starts or ends."""
    by_name: dict[str, list[AxisRef]] = {}
    for other in sorted(others, key=axis_order_key):
        by_name.setdefault(other.name, []).append(other)
    if not by_name:
        return
    for axes in axes_per_dim:
        axes[:] = [part for axis in axes for part in _split(axis, by_name.get(axis.name, ()), mesh)]


def align_with_each_other(first: AxesPerDim, second: AxesPerDim, mesh: Mesh) -> None:
    """Split the axes of both lists in place until those that overlap are equal."""
    first_axes = [axis for axes in first for axis in axes]
    second_axes = [axis for axes in second for axis in axes]
    align(first, second_axes, mesh)
    align(second, first_axes, mesh)


def _split(axis: AxisRef, others: Sequence[AxisRef], mesh: Mesh) -> list[AxisRef]:
    """Return the parts of ``axis`` before, inside and after the others, as far as they can coexist."""
    parts: list[AxisRef] = []
    rest: AxisRef | None = axis
    for other in _from_first_overlap(axis, others):
        if rest is None or other.contains(rest):
            break
        overlap = rest.overlap(other)
        if overlap is None:
            break
        prefix = rest.prefix_without_overlap(other)
        parts += [overlap] if prefix is None else [prefix, overlap]
        rest = rest.suffix_without_overlap(other, mesh)
    return parts if rest is None else [*parts, rest]


def _from_first_overlap(axis: AxisRef, others: Sequence[AxisRef]) -> Sequence[AxisRef]:
    for index, other in enumerate(others):
        if other.overlaps(axis):
            return others[index:]
    return ()


@define(eq=False)
class ReshardState:
    """The difference between two shardings of one tensor, while collectives make it smaller.

    All sub-axes are aligned, so that any two that overlap are equal.

    Attributes:
        mesh: The mesh, whose axes source and target share.
        shape: The sizes of the tensor; None for a dynamic one.
        target: The sharding to reach.
        current_mesh: The mesh of the current sharding, by name or inlined.
        current_axes: The axes of the current sharding, by dimension.
        in_axes: Of those, the ones after the common prefix with the target.
        out_axes: The axes of the target after the common prefix.
        in_set: The axes that shard something now where they should not, so that nothing else can use them.
        out_positions: Axis to dimension and index in ``out_axes``; as of the last all-slice or collective-permute.
        capacities: By dimension, how many more times it may be split by the collective at hand.
    """

    mesh: Mesh
    shape: tuple[int | None, ...]
    target: TensorSharding
    current_mesh: str | Mesh
    current_axes: AxesPerDim
    in_axes: AxesPerDim
    out_axes: AxesPerDim
    in_set: set[AxisRef] = field(factory=set)
    out_positions: dict[AxisRef, tuple[int, int]] = field(factory=dict)
    capacities: list[int] = field(factory=list)

    @classmethod
    def between(
        cls, source: TensorSharding, target: TensorSharding, shape: tuple[int | None, ...], mesh: Mesh
    ) -> ReshardState:
        """Return the state in which the current sharding is the source."""
        in_axes, out_axes = _axes_per_dim(source), _axes_per_dim(target)
        align_with_each_other(in_axes, out_axes, mesh)
        for dim_in_axes, dim_out_axes in zip(in_axes, out_axes, strict=True):
            _remove_common_prefix(dim_in_axes, dim_out_axes)
        state = cls(mesh, shape, target, source.mesh, _axes_per_dim(source), in_axes, out_axes)
        state.in_set = {axis for axes in in_axes for axis in axes}
        state.capacities = [1] * len(in_axes)
        state.locate_out_axes()
        return state

    @property
    def dims(self) -> range:
        """The dimensions of the tensor."""
        return range(len(self.in_axes))

    @property
    def is_done(self) -> bool:
        """True if the current sharding is the target."""
        return self.current_mesh == self.target.mesh and not any(self.in_axes) and not any(self.out_axes)

    @property
    def current_sharding(self) -> TensorSharding:
        """The current sharding."""
        dims = tuple(DimensionSharding(tuple(axes)) for axes in self.current_axes)
        return TensorSharding(self.current_mesh, dims, unreduced_axes=self.target.unreduced_axes)

    def size(self, axes: Iterable[AxisRef]) -> int:
        """Return the number of parts that axes make."""
        return axes_size(axes, self.mesh)

    def locate_out_axes(self) -> None:
        """Bring ``out_positions`` up to date; needed whenever an axis of the target was split."""
        self.out_positions = {}
        for dim, axes in enumerate(self.out_axes):
            for index, axis in enumerate(axes):
                self.out_positions.setdefault(axis, (dim, index))

    def add_current(self, dim: int, axis: AxisRef) -> None:
        """Shard a dimension further."""
        add_axis_or_merge(self.current_axes[dim], axis, self.mesh)

    def pop_current(self, dim: int, axes: list[AxisRef]) -> None:
        """Take axes from the end of a dimension; they may be parts of its axes."""
        current = self.current_axes[dim]
        for axis in reversed(axes):
            prefix = current[-1].prefix_without_overlap(axis)
            if prefix is None:
                current.pop()
            else:
                current[-1] = prefix

    def fit(self, axis: AxisRef, capacity: int) -> tuple[AxisRef | None, AxisRef | None, int]:
        """Return the part of an axis that fits into a capacity, the rest of it, and the capacity that is left.

        Nothing fits where neither size divides the other.

        Mirrors reshard_to_collectives.cc::getAxisWithinCapacity.
        """
        size = axis.size(self.mesh)
        if capacity <= 1 or not are_divisible(size, capacity):
            return None, None, capacity
        if capacity >= size:
            return axis, None, capacity // size
        within = AxisRef(axis.name, SubAxis(axis.pre_size, capacity))
        return within, AxisRef(axis.name, SubAxis(within.next_pre_size(self.mesh), size // capacity)), 1

    def distribute(
        self,
        available_in: Callable[[int], list[AxisRef]],
        *,
        to_front: bool,
        on_added: Callable[[int, AxisRef], None] = lambda dim, axis: None,
    ) -> None:
        """Add available axes to ``in_axes`` of each dimension, as far as its capacity goes.

        Mirrors reshard_to_collectives.cc::distributeInAxesWithinCapacity.

        Args:
            available_in: Dimension to the list of axes to take from; what is used is taken out of it.
            to_front: Whether to add before the axes a dimension has, instead of after them.
            on_added: Called for each axis added.
        """
        split_off: list[AxisRef] = []
        for dim in self.dims:
            position = 0 if to_front else len(self.in_axes[dim])
            for within, remainder in self._take(available_in(dim), dim):
                self.in_axes[dim].insert(position, within)
                position += 1
                self.in_set.add(within)
                on_added(dim, within)
                if remainder is not None:
                    split_off.append(within)
        align(self.out_axes, split_off, self.mesh)

    def _take(self, available: list[AxisRef], dim: int) -> list[tuple[AxisRef, AxisRef | None]]:
        """Move from a list the axes that fit into a dimension; the rest of a split axis goes to its front."""
        pairs: list[tuple[AxisRef, AxisRef | None]] = []
        index = 0
        while index < len(available) and self.capacities[dim] > 1:
            within, remainder, self.capacities[dim] = self.fit(available[index], self.capacities[dim])
            if within is None:
                index += 1
                continue
            del available[index]
            pairs.append((within, remainder))
            if remainder is not None:
                available.insert(0, remainder)
        return pairs


def are_divisible(first: int, second: int) -> bool:
    """Return whether one of two sizes is a multiple of the other."""
    return first % second == 0 or second % first == 0


def _axes_per_dim(sharding: TensorSharding) -> AxesPerDim:
    return [list(dim.axes) for dim in sharding.dim_shardings]


def _remove_common_prefix(first: list[AxisRef], second: list[AxisRef]) -> None:
    length = 0
    while length < min(len(first), len(second)) and first[length] == second[length]:
        length += 1
    del first[:length], second[:length]
