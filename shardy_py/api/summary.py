"""A few numbers about a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardy_py.api.main_function import arguments_of
from shardy_py.api.sizes import tensor_bytes
from shardy_py.ir.graph.data_flow import shardable_value
from shardy_py.ir.graph.op_names import FUNCTION, MESH
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.ops import IsTerminator, OpSemantics
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

RESHARDS = frozenset(
    f"sdy.{name}"
    for name in (
        "reshard",
        "all_gather",
        "all_slice",
        "all_to_all",
        "all_reduce",
        "reduce_scatter",
        "collective_permute",
        "replicated_to_unreduced",
        "sharded_to_unreduced",
    )
)
"""The ops that say where data moves."""


@frozen
class Summary:
    """Numbers about a propagated program, with what the pipeline added to it.

    Args:
        ops: All operations but functions, meshes and terminators.
        reshards: Those of them that move data: reshards and collectives.
        values: All tensors with at least one dimension: arguments and results.
        values_with_sharding: Those that have a sharding, be it an empty one.
        values_sharded: Those with at least one sharded dimension.
        axes_used: For each mesh axis, on how many values it shards a dimension; in mesh order.
        parameters: The arguments of the main function whose size is known.
        parameter_bytes: Their bytes in all, unsharded.
        parameter_bytes_per_device: Their bytes on one device: every dimension divided by its axes and rounded up.
        shardings_reduced: The number of shardings that were given and that the result does not have, as `warnings` say.
    """

    ops: int
    reshards: int
    values: int
    values_with_sharding: int
    values_sharded: int
    axes_used: tuple[tuple[str, int], ...]
    parameters: int
    parameter_bytes: int
    parameter_bytes_per_device: int
    shardings_reduced: int = 0


def summarize(program: Program, main: Op, semantics: OpSemantics) -> Summary:
    """Count what there is to know about a propagated program."""
    values = list(shaped_values(program))
    shardings = [sharding_of(program, value, semantics) for value in values]
    used: dict[str, int] = {axis.name: 0 for mesh in program.meshes.values() for axis in mesh.axes}
    for sharding in shardings:
        for name in _axis_names(sharding):
            used[name] = used.get(name, 0) + 1
    pairs = [
        (whole, part)
        for argument in arguments_of(main)
        if (whole := tensor_bytes(argument.type)) is not None and (part := _local_bytes(program, argument)) is not None
    ]
    ops = [op for op in program.walk() if is_counted(op, semantics)]
    return Summary(
        ops=len(ops),
        reshards=sum(1 for op in ops if op.name in RESHARDS),
        values=len(values),
        values_with_sharding=sum(1 for sharding in shardings if sharding is not None),
        values_sharded=sum(1 for sharding in shardings if is_sharded(sharding)),
        axes_used=tuple(used.items()),
        parameters=len(pairs),
        parameter_bytes=sum(whole for whole, _ in pairs),
        parameter_bytes_per_device=sum(part for _, part in pairs),
    )


def is_counted(op: Op, semantics: OpSemantics) -> bool:
    """Return whether an op computes something: no function, no mesh, no terminator."""
    return op.name not in (FUNCTION, MESH) and not semantics.has_trait(op, IsTerminator)


def sharding_of(program: Program, value: Value, semantics: OpSemantics) -> TensorSharding | None:
    """Return the sharding of a value: its own, or that of the value at the other end of a data-flow edge."""
    sharding = program.shardings.get(value.id)
    if sharding is not None:
        return sharding
    carrier = shardable_value(value, semantics)
    return None if carrier is None else program.shardings.get(carrier.id)


def is_sharded(sharding: TensorSharding | None) -> bool:
    """Return whether at least one dimension has an axis."""
    return sharding is not None and any(dim.axes for dim in sharding.dim_shardings)


def shaped_values(program: Program) -> Iterator[Value]:
    """Iterate over all tensors with at least one dimension, in program order."""
    for op in program.walk():
        yield from _shaped(op.results)
        for region in op.regions:
            for block in region.blocks:
                yield from _shaped(block.arguments)


def mesh_of(program: Program, sharding: TensorSharding) -> Mesh | None:
    """Return the mesh of a sharding."""
    return sharding.mesh if isinstance(sharding.mesh, Mesh) else program.meshes.get(sharding.mesh)


def _shaped(values: Iterable[Value]) -> Iterator[Value]:
    return (value for value in values if isinstance(value.type, TensorType) and value.type.rank)


def _axis_names(sharding: TensorSharding | None) -> list[str]:
    if sharding is None:
        return []
    return list(dict.fromkeys(axis.name for dim in sharding.dim_shardings for axis in dim.axes))


def _local_bytes(program: Program, value: Value) -> int | None:
    sharding = program.shardings.get(value.id)
    return tensor_bytes(value.type, sharding, mesh_of(program, sharding) if sharding else None)
