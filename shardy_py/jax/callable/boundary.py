"""The boundary of a local program under JAX: global arrays become shards, and shards become global arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import field

from shardy_py.jax.callable.contexts import over_mesh
from shardy_py.jax.callable.placement import PortPlacement, ProgramPlacement
from shardy_py.sharding.tensor import ReductionOp
from shardy_py.values import frozen

CallBody = Callable[[Sequence[Any]], Sequence[Any]]
"""A program of one device: shards in, shards out."""


@frozen
class Boundary:
    """The boundary of a local program over a mesh of JAX.

    Args:
        placement: The placement of the program.
        mesh: The mesh of JAX, or None for that of the context.
        axes: The axes that the ``shard_map`` takes: those of the program, and others along which all is replicated.
        is_explicit: Whether JAX keeps the shardings of arrays over the mesh in their types.
        has_views: Whether arrays that the mesh cannot describe come and go as views, see `has_view`.
    """

    placement: ProgramPlacement
    mesh: Any = field(repr=False)
    axes: tuple[str, ...]
    is_explicit: bool = False
    has_views: bool = False

    def call(self, body: CallBody, arrays: Sequence[Any]) -> list[Any]:
        """Return the global results of a body for global arrays, with values that JAX traces.

        Args:
            body: What each device runs.
            arrays: The global arrays.
        """
        import jax

        placement = self.placement
        names = self._names

        def on_device(*shards: Any) -> tuple[Any, ...]:
            index = _Coordinate(names)
            pairs = zip(placement.arguments, shards, strict=True)
            results = body([self._enter(item, shard, index) for item, shard in pairs])
            return tuple(self._leave(item, shard) for item, shard in zip(placement.results, results, strict=True))

        mapped = jax.shard_map(
            on_device,
            mesh=self.mesh,
            in_specs=tuple(self._in_spec(item) for item in placement.arguments),
            out_specs=tuple(self._out_spec(item) for item in placement.results),
            axis_names=set(self.axes),
            check_vma=False,
        )
        pairs = zip(placement.arguments, arrays, strict=True)
        with over_mesh(self.mesh):
            results = mapped(*(self._lay(item, array) for item, array in pairs))
        pairs = zip(placement.results, results, strict=True)
        return [array if self._is_view(item) else _join(item, array) for item, array in pairs]

    def _is_view(self, placement: PortPlacement) -> bool:
        return self.has_views and has_view(placement)

    def _lay(self, placement: PortPlacement, array: Any) -> Any:
        """Return an array of equal parts; where types say shardings, with that of its part of the ``shard_map``."""
        import jax

        if self._is_view(placement):
            return array
        array = _pad(placement, array)
        if not self.is_explicit:
            return array
        mesh = jax.sharding.get_abstract_mesh() if self.mesh is None else self.mesh
        spec = _along_explicit_axes(self._in_spec(placement), mesh)
        return jax.sharding.reshard(array, spec if self.mesh is None else jax.sharding.NamedSharding(mesh, spec))

    def _in_spec(self, placement: PortPlacement) -> Any:
        import jax

        if self._is_view(placement):
            return jax.sharding.PartitionSpec(self._names)
        return jax.sharding.PartitionSpec(*(placement.spec or ()))

    def _out_spec(self, placement: PortPlacement) -> Any:
        import jax

        if _is_stacked(placement):
            return jax.sharding.PartitionSpec(self._names)
        return jax.sharding.PartitionSpec(*(placement.spec or ()))

    @property
    def _names(self) -> tuple[str, ...]:
        """The axes of the program in JAX's mesh."""
        return tuple(name for name, _ in self.placement.axes if name in self.axes)

    def _enter(self, placement: PortPlacement, shard: Any, index: _Coordinate) -> Any:
        """Return what the device's program gets: its part, and of an unreduced value what it adds to the sum."""
        import jax

        port = placement.port
        if self._is_view(placement):
            return shard[0]
        if placement.spec is None:
            starts = [index.look_up(column) for column in zip(*placement.starts, strict=True)]
            shard = jax.lax.dynamic_slice(shard, starts, port.shard_shape)
        if port.reduction_op == "sum":
            is_first = index.look_up([number == 0 for number in placement.addends])
            shard = jax.numpy.where(is_first, shard, jax.numpy.zeros_like(shard))
        return shard

    def _leave(self, placement: PortPlacement, shard: Any) -> Any:
        return shard[None] if _is_stacked(placement) else shard


def has_view(placement: PortPlacement) -> bool:
    """Return whether an array has shards of which no axes of the mesh give each device its own.

    Such an array is seen as one of its shards along a new first dimension, for which nothing moves.
    """
    is_even = placement.padded_shape == placement.port.type.shape
    return placement.spec is None and is_even and not placement.addends


@frozen
class _Coordinate:
    """The number of the device's coordinate in the mesh."""

    names: tuple[str, ...]

    def look_up(self, table: Sequence[Any]) -> Any:
        """Return the entry of the device in a table."""
        import jax

        index = jax.lax.axis_index(self.names)
        return jax.lax.dynamic_index_in_dim(jax.numpy.asarray(table), index, 0, keepdims=False)


def _along_explicit_axes(spec: Any, mesh: Any) -> Any:
    """Return a spec without the axes of a mesh along which types do not say shardings."""
    import jax

    pairs = zip(mesh.axis_names, mesh.axis_types, strict=True)
    explicit = {name for name, type_ in pairs if type_ == jax.sharding.AxisType.Explicit}

    def kept(entry: Any) -> Any:
        if isinstance(entry, tuple):
            return tuple(name for name in entry if name in explicit) or None
        return entry if entry in explicit else None

    return jax.sharding.PartitionSpec(*map(kept, spec))


def _pad(placement: PortPlacement, array: Any) -> Any:
    import jax

    sizes = zip(placement.padded_shape, array.shape, strict=True)
    high = [(0, padded - size) for padded, size in sizes]
    return jax.numpy.pad(array, high) if any(after for _, after in high) else array


def _is_stacked(placement: PortPlacement) -> bool:
    """Return whether the shards of a result come out one after the other, to be joined outside."""
    return placement.spec is None or bool(placement.addends)


def _join(placement: PortPlacement, array: Any) -> Any:
    """Return the global array of a result of the local program."""
    import jax

    port = placement.port
    if _is_stacked(placement):
        joined = jax.numpy.zeros(placement.padded_shape, array.dtype)
        seen = set()
        addends = placement.addends or (0,) * len(array)
        for coordinate, key in enumerate(zip(placement.starts, addends, strict=True)):
            if key not in seen:
                seen.add(key)
                part = tuple(slice(at, at + size) for at, size in zip(key[0], port.shard_shape, strict=True))
                shard = array[coordinate]
                joined = joined.at[part].set(_combined(port.reduction_op, joined[part], shard) if key[1] else shard)
        array = joined
    return array if array.shape == port.type.shape else array[tuple(slice(0, size) for size in port.type.shape)]


def _combined(reduction: ReductionOp | None, one: Any, other: Any) -> Any:
    import jax

    if reduction in ("min", "max"):
        return jax.numpy.minimum(one, other) if reduction == "min" else jax.numpy.maximum(one, other)
    return one | other if one.dtype == bool else one + other
