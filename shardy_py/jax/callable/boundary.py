"""The boundary of a local program under JAX: global arrays become shards, and shards become global arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import field

from shardy_py.jax.callable.placement import Placement, ProgramPlacement
from shardy_py.sharding.tensor import ReductionOp
from shardy_py.values import frozen

CallBody = Callable[[Sequence[Any]], Sequence[Any]]
"""What each device runs: shards in, shards out."""


@frozen
class Boundary:
    """The boundary of a local program over a mesh of JAX.

    Args:
        placement: The placement of the program.
        mesh: The mesh of JAX, or None for that of the context.
        axes: The axes that the ``shard_map`` takes: those of the program, and others along which all is replicated.
        is_explicit: Whether JAX keeps the shardings of arrays over the mesh in their types.
    """

    placement: ProgramPlacement
    mesh: Any = field(repr=False)
    axes: tuple[str, ...]
    is_explicit: bool = False

    def call(self, body: CallBody, arrays: Sequence[Any]) -> list[Any]:
        """Return the global results of a body for global arrays, with values that JAX traces.

        Args:
            body: What each device runs.
            arrays: The global arrays.
        """
        import jax

        placement = self.placement
        names = tuple(name for name, _ in placement.axes if name in self.axes)

        def on_device(*shards: Any) -> tuple[Any, ...]:
            index = _Coordinate(names)
            pairs = zip(placement.arguments, shards, strict=True)
            results = body([_enter(item, shard, index) for item, shard in pairs])
            return tuple(_leave(item, shard) for item, shard in zip(placement.results, results, strict=True))

        mapped = jax.shard_map(
            on_device,
            mesh=self.mesh,
            in_specs=tuple(jax.sharding.PartitionSpec(*(item.spec or ())) for item in placement.arguments),
            out_specs=tuple(_out_spec(item, names) for item in placement.results),
            axis_names=set(self.axes),
            check_vma=False,
        )
        pairs = zip(placement.arguments, arrays, strict=True)
        results = mapped(*(self._lay(item, _pad(item, array)) for item, array in pairs))
        return [_join(item, array) for item, array in zip(placement.results, results, strict=True)]

    def _lay(self, placement: Placement, array: Any) -> Any:
        """Return an array with the sharding that its part of the ``shard_map`` has, where types say shardings."""
        import jax

        if not self.is_explicit:
            return array
        spec = jax.sharding.PartitionSpec(*(placement.spec or ()))
        return jax.sharding.reshard(array, spec if self.mesh is None else jax.sharding.NamedSharding(self.mesh, spec))


@frozen
class _Coordinate:
    """The number of the device's coordinate in the mesh."""

    names: tuple[str, ...]

    def look_up(self, table: Sequence[Any]) -> Any:
        """Return the entry of the device in a table."""
        import jax

        index = jax.lax.axis_index(self.names)
        return jax.lax.dynamic_index_in_dim(jax.numpy.asarray(table), index, 0, keepdims=False)


def _pad(placement: Placement, array: Any) -> Any:
    import jax

    sizes = zip(placement.padded_shape, array.shape, strict=True)
    high = [(0, padded - size) for padded, size in sizes]
    return jax.numpy.pad(array, high) if any(after for _, after in high) else array


def _enter(placement: Placement, shard: Any, index: _Coordinate) -> Any:
    """Return what the device's program gets: its part, and of an unreduced value what it adds to the sum."""
    import jax

    port = placement.port
    if placement.spec is None:
        starts = [index.look_up(column) for column in zip(*placement.starts, strict=True)]
        shard = jax.lax.dynamic_slice(shard, starts, port.shard_shape)
    if port.reduction_op == "sum":
        is_first = index.look_up([number == 0 for number in placement.addends])
        shard = jax.numpy.where(is_first, shard, jax.numpy.zeros_like(shard))
    return shard


def _is_stacked(placement: Placement) -> bool:
    """Return whether the shards of a result come out one after the other, to be joined outside."""
    return placement.spec is None or bool(placement.addends)


def _out_spec(placement: Placement, names: tuple[str, ...]) -> Any:
    import jax

    return (
        jax.sharding.PartitionSpec(names)
        if _is_stacked(placement)
        else jax.sharding.PartitionSpec(*(placement.spec or ()))
    )


def _leave(placement: Placement, shard: Any) -> Any:
    return shard[None] if _is_stacked(placement) else shard


def _join(placement: Placement, array: Any) -> Any:
    """Return the global array of what came out."""
    import jax

    port = placement.port
    if _is_stacked(placement):
        whole = jax.numpy.zeros(placement.padded_shape, array.dtype)
        seen = set()
        addends = placement.addends or (0,) * len(array)
        for coordinate, key in enumerate(zip(placement.starts, addends, strict=True)):
            if key not in seen:
                seen.add(key)
                part = tuple(slice(at, at + size) for at, size in zip(key[0], port.shard_shape, strict=True))
                own = array[coordinate]
                whole = whole.at[part].set(_combined(port.reduction_op, whole[part], own) if key[1] else own)
        array = whole
    return array if array.shape == port.type.shape else array[tuple(slice(0, size) for size in port.type.shape)]


def _combined(reduction: ReductionOp | None, one: Any, other: Any) -> Any:
    import jax

    if reduction in ("min", "max"):
        return jax.numpy.minimum(one, other) if reduction == "min" else jax.numpy.maximum(one, other)
    return one | other if one.dtype == bool else one + other
