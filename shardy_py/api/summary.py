"""The summary of a run: counts of ops and tensors, bytes on a device, and the communication that the program needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import prod

from shardy_py.api.main_function import arguments_of
from shardy_py.ir.graph.data_flow import shardable_value
from shardy_py.ir.graph.op_names import FUNCTION, MESH
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.ir.interfaces.ops import IsTerminator, OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.finish.insert_explicit_reshards import InsertExplicitReshardsPass
from shardy_py.transforms.run import run
from shardy_py.values import frozen


def local_shape(shape: tuple[int, ...], sharding: TensorSharding | None, mesh: Mesh | None) -> tuple[int, ...]:
    """Return the sizes of the largest shard: every dimension divided by its axes, rounded up."""
    # A sharding over a single device has no dimensions, whatever the tensor has.
    if sharding is None or mesh is None or mesh.is_maximal:
        return shape
    return tuple(-(-size // axes_size(dim.axes, mesh)) for size, dim in zip(shape, sharding.dim_shardings, strict=True))


def tensor_bytes(type_: Type, sharding: TensorSharding | None = None, mesh: Mesh | None = None) -> int | None:
    """Return the bytes of a tensor, or of its largest shard, rounded up; None where a size is not known."""
    if not isinstance(type_, TensorType) or not type_.is_static:
        return None
    from shardy_py.support.element_types import mlir_element_bits

    bits = mlir_element_bits(type_.element_type)
    if bits is None:
        return None
    elements = prod(local_shape(type_.shape, sharding, mesh))  # type: ignore[arg-type]
    return -(-elements * bits // 8)


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
    """Count the ops, tensors, axes and bytes of a propagated program."""
    values = list(shaped_values(program))
    shardings = [sharding_of(program, value, semantics) for value in values]
    used: dict[str, int] = {axis.name: 0 for mesh in program.meshes.values() for axis in mesh.axes}
    for sharding in shardings:
        for name in _axis_names(sharding):
            used[name] = used.get(name, 0) + 1
    pairs = [
        (bytes_, local_bytes)
        for argument in arguments_of(main)
        if (bytes_ := tensor_bytes(argument.type)) is not None
        and (local_bytes := _local_bytes(program, argument)) is not None
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
        parameter_bytes=sum(bytes_ for bytes_, _ in pairs),
        parameter_bytes_per_device=sum(local_bytes for _, local_bytes in pairs),
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


def count_communications(program: Program, registry: Registry, *, are_explicit: bool) -> Mapping[str, int]:
    """Return the number of reshards and collectives of each kind, with those that are left to the partitioner.

    Args:
        program: A propagated program; it stays as it is.
        registry: The definitions of ops.
        are_explicit: Whether all of them stand in the program already.
    """
    if not are_explicit:
        program = copy_program(program)
        full = InsertExplicitReshardsPass(enable_full_version=True, reshard_ops_without_rule=True)
        run(program, (full,), PassContext(registry))
    return count_written(program)


def count_written(program: Program) -> Mapping[str, int]:
    """Return the number of reshards and collectives in a program by the names of their ops."""
    names = (op.name for op in program.walk() if op.name in RESHARDS and op.operands and op.results)
    return dict(sorted(Counter(names).items()))


@frozen
class Communications:
    """Communication of a propagated program: written in the module, or left to a partitioner.

    Args:
        written: The number of ops of the module by their names, such as ``sdy.reshard``.
        left: The number of those that a partitioner will add, by their kinds, such as ``all_reduce``.
    """

    written: Mapping[str, int]
    left: Mapping[str, int]

    @property
    def total(self) -> int:
        """The number of all."""
        return sum(self.written.values()) + sum(self.left.values())


def split_communications(counts: Mapping[str, int], program: Program, text: str | None = None) -> Communications:
    """Return the communications that the module has as ops, and those that are left to a partitioner.

    Args:
        counts: The number of all, as `count_communications` counts them.
        program: The propagated program.
        text: The module as it is written, where that has another form than the program.
    """
    written = {name: count for name, count in count_written(program).items() if text is None or name in text}
    unwritten = {name: count - written.get(name, 0) for name, count in counts.items()}
    return Communications(written, {name.partition(".")[2]: count for name, count in unwritten.items() if count > 0})
