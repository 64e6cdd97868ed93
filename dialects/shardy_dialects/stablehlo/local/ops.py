"""StableHLO's ops for communication between devices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from shardy_dialects.stablehlo.collectives.mesh_axes import mesh_groups, read_mesh_groups
from shardy_dialects.stablehlo.elementwise.ops import COMBINING
from shardy_dialects.stablehlo.local.literals import array, constant_literal, dense, literal, read_dense
from shardy_dialects.stablehlo.slicing import SLICE, pad_slice
from shardy_py.ir.graph.attributes import UNIT, Attribute, DenseElements, OpaqueElements, RawAttribute
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.types import TensorType, Type, static_shape, tensor
from shardy_py.ir.interfaces.local import Groups, LocalEmitter, LocalOps, Pairs, Shard, no_local_form
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.sharding.unknown_size import is_derived
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.ir.interfaces.local_ops import LocalCollective
    from shardy_py.sharding.shard_moves import Windows


_GROUPS = {
    **dict.fromkeys(("all_gather", "all_reduce", "all_to_all", "reduce_scatter"), "replica_groups"),
    "collective_permute": "source_target_pairs",
}
"""The collectives, with the attribute that has their groups."""


def integers(emit: LocalEmitter, numbers: Sequence[int]) -> Value:
    """Return a constant list of 64-bit integers."""
    return emit.op("stablehlo.constant", (), [tensor(len(numbers), dtype="i64")], {"value": dense(numbers)}).result


@frozen
class StablehloLocalOps(LocalOps):
    """The ops of StableHLO, with replica groups, channels and partition ids.

    Args:
        are_replicas: Whether devices are replicas: they have replica ids, and their collectives no channels.
        by_axes: Whether groups are written as axes of a mesh of the program, where they are some.
    """

    are_replicas: bool = False
    by_axes: bool = False

    def all_gather(self, emit: LocalEmitter, value: Value, dim: int, groups: Groups) -> Value:
        """Return the shards of each group, joined along a dimension."""
        shape = list(value.shape)
        shape[dim] *= len(groups[0])
        return self._collective(emit, "all_gather", value, shape, {"all_gather_dim": dim, **self._groups(emit, groups)})

    def all_reduce(self, emit: LocalEmitter, value: Value, groups: Groups, combiner: Combiner) -> Value:
        """Return the combination of the values of each group."""
        return self._collective(
            emit, "all_reduce", value, value.shape, self._groups(emit, groups), _body(emit, value, combiner)
        )

    def reduce_scatter(self, emit: LocalEmitter, value: Value, dim: int, groups: Groups, combiner: Combiner) -> Value:
        """Return one part per device of the combination of the values of each group."""
        shape = list(value.shape)
        shape[dim] //= len(groups[0])
        attributes = {"scatter_dimension": dim, **self._groups(emit, groups)}
        return self._collective(emit, "reduce_scatter", value, shape, attributes, _body(emit, value, combiner))

    def all_to_all(self, emit: LocalEmitter, value: Value, split_dim: int, concat_dim: int, groups: Groups) -> Value:
        """Return the parts that the devices of each group send each other, joined along a dimension."""
        shape, count = list(value.shape), len(groups[0])
        shape[split_dim] //= count
        shape[concat_dim] *= count
        attributes = {
            "split_dimension": split_dim,
            "concat_dimension": concat_dim,
            "split_count": count,
            "replica_groups": self._group_attribute(emit, groups),
        }
        return self._collective(emit, "all_to_all", value, shape, attributes)

    def collective_permute(self, emit: LocalEmitter, value: Value, pairs: Pairs) -> Value:
        """Return the value of the source of each device; zeros where it has none."""
        attributes = {"source_target_pairs": dense([tuple(pair) for pair in pairs])}
        return self._collective(emit, "collective_permute", value, value.shape, attributes)

    def offset(self, emit: LocalEmitter, table: Sequence[int] | None) -> Value:
        """Return the scalar that a table has for the device; 0 without a table."""
        scalar = tensor(dtype="i64")
        if table is None:
            zero = RawAttribute("dense<0> : tensor<i64>")
            return emit.op("stablehlo.constant", (), [scalar], {"value": zero}).result
        device = self._number(emit)
        index = emit.op("stablehlo.convert", [device], [scalar]).result
        entry = self.dynamic_slice(emit, integers(emit, table), [index], [1])
        return self.reshape(emit, entry, ())

    def dynamic_slice(self, emit: LocalEmitter, value: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        """Return the part of a tensor at a start; along a dynamic size one of several equal parts."""
        from shardy_dialects.stablehlo.local.dynamic_parts import DynamicParts
        from shardy_dialects.stablehlo.local.writer import Writer, clamped_slice

        value = clamped_slice(Writer(emit, self), value)
        if any(is_derived(size) and size != value.shape[dim] for dim, size in enumerate(sizes)):
            return DynamicParts(Writer(emit, self), value, starts, sizes).slice()
        return emit.op(
            "stablehlo.dynamic_slice", [value, *starts], [_like(value, sizes)], {"slice_sizes": tuple(sizes)}
        ).result

    def reshape(self, emit: LocalEmitter, value: Value, shape: Sequence[int]) -> Value:
        """Return the elements in another shape."""
        return emit.op("stablehlo.reshape", [value], [_like(value, shape)]).result

    def transpose(self, emit: LocalEmitter, value: Value, permutation: Sequence[int]) -> Value:
        """Return the tensor with its dimensions in another order."""
        shape = [value.shape[dim] for dim in permutation]
        attributes = {"permutation": tuple(permutation)}
        return emit.op("stablehlo.transpose", [value], [_like(value, shape)], attributes).result

    def resize(self, emit: LocalEmitter, value: Value, shape: Sequence[int]) -> Value:
        """Return a tensor cut or extended at the high ends of its dimensions; what the new elements hold is open."""
        high = [max(size - old, 0) for size, old in zip(shape, value.shape, strict=True)]
        if any(high):
            value = _padded(emit, value, high)
        if tuple(shape) == tuple(value.shape):
            return value
        attributes = {"start_indices": (0,) * len(shape), "limit_indices": tuple(shape), "strides": (1,) * len(shape)}
        return emit.op("stablehlo.slice", [value], [_like(value, shape)], attributes).result

    def mask(self, emit: LocalEmitter, value: Value, dim: int, count: Value | int, fill: Value) -> Value:
        """Return a tensor with a scalar in the place of all but the first elements along a dimension."""
        index, scalar = TensorType(value.shape, "i32"), tensor(dtype="i32")
        positions = emit.op("stablehlo.iota", (), [index], {"iota_dimension": dim}).result
        if isinstance(count, int):
            text = {"value": RawAttribute(f"dense<{count}> : tensor<i32>")}
            limit = emit.op("stablehlo.constant", (), [scalar], text).result
        else:
            limit = emit.op("stablehlo.convert", [count], [scalar]).result
        direction = {"comparison_direction": RawAttribute("#stablehlo<comparison_direction LT>")}
        operands = [positions, _spread(emit, limit, index)]
        is_real = emit.op("stablehlo.compare", operands, [TensorType(value.shape, "i1")], direction).result
        filled = _spread(emit, fill, value.type)
        return emit.op("stablehlo.select", [is_real, value, filled], [value.type]).result

    def update_slice(self, emit: LocalEmitter, value: Value, update: Value, starts: Sequence[Value]) -> Value | None:
        """Return a tensor with another one in the place that begins at a start."""
        return emit.op("stablehlo.dynamic_update_slice", [value, update, *starts], [value.type]).result

    def scalar(self, emit: LocalEmitter, element_type: str, number: Combiner | float) -> Value | None:
        """Return a constant scalar; None where the element type has no such number."""
        text = constant_literal(number, element_type)
        if text is None:
            return None
        type_ = tensor(dtype=element_type)
        return emit.op("stablehlo.constant", (), [type_], {"value": RawAttribute(f"dense<{text}> : {type_}")}).result

    def windows(
        self,
        shard: Shard,
        value: Value,
        dim: int,
        sharding: TensorSharding,
        windows: Windows,
        fill: Value | None = None,
    ) -> Value | None:
        """Return the elements of a dimension that each device needs, sent by permutes."""
        from shardy_dialects.stablehlo.local.windows import Cut, WindowFetcher

        fetcher = WindowFetcher(Cut(shard, sharding, dim), dim, windows.size, fill)
        return fetcher.fetch(value, windows.held, windows.starts)

    def padded_attributes(
        self, op: Op, operands: Sequence[Sequence[int]], results: Sequence[Type]
    ) -> Mapping[str, Attribute] | None:
        """Return the attributes of an op that hold sizes, changed for padded tensors; None where there are none."""
        return pad_slice(op, operands, static_shape(results[0]) or ()) if op.name == SLICE else None

    def constant(self, emit: LocalEmitter, op: Op, type_: TensorType) -> Value | None:
        """Return the constant of an op with all elements equal in another type; None where they differ."""
        value = op.attributes["value"]
        if op.results[0].type == type_:
            return self.whole_constant(emit, op)
        text = str(value) if isinstance(value, (DenseElements, OpaqueElements, RawAttribute)) else ""
        element = text.partition("<")[2].rpartition("> :")[0]
        if not text.startswith("dense<") or element.startswith(("[", '"')):
            return None
        splat = RawAttribute(f"dense<{element}> : {type_}")
        return emit.op("stablehlo.constant", (), [type_], {"value": splat}).result

    def whole_constant(self, emit: LocalEmitter, op: Op) -> Value:
        """Return the constant of an op as it is."""
        return emit.op("stablehlo.constant", (), [op.results[0].type], {"value": op.attributes["value"]}).result

    def on_device(
        self, emit: LocalEmitter, device: int, types: Sequence[Type], run: Callable[[LocalEmitter], Sequence[Value]]
    ) -> Sequence[Value]:
        """Return the results of ops that run on one device only; other devices get zeros, and new tokens."""
        scalar = tensor(dtype="i64")
        number = self._number(emit)
        index = emit.op("stablehlo.convert", [number], [scalar]).result
        value = {"value": RawAttribute(f"dense<{device}> : tensor<i64>")}
        target = emit.op("stablehlo.constant", (), [scalar], value).result
        direction = {"comparison_direction": RawAttribute("#stablehlo<comparison_direction EQ>")}
        is_here = emit.op("stablehlo.compare", [index, target], [tensor(dtype="i1")], direction).result
        regions = [
            _returning(emit, run),
            _returning(emit, lambda inside: [self._nothing(inside, type_) for type_ in types]),
        ]
        return emit.op("stablehlo.if", [is_here], types, regions=regions).results

    def _nothing(self, emit: LocalEmitter, type_: Type) -> Value:
        """Return zeros, or a token."""
        if not isinstance(type_, TensorType):
            return emit.op("stablehlo.create_token", (), [type_]).result
        text = constant_literal(0, type_.element_type)
        if text is None:
            raise no_local_form(f"there is no zero of the type {type_}")
        return emit.op("stablehlo.constant", (), [type_], {"value": RawAttribute(f"dense<{text}> : {type_}")}).result

    def for_replicas(self) -> LocalOps:
        """Return the ops for devices that are replicas of a program, and not partitions."""
        return evolve(self, are_replicas=True)

    def for_mesh_axes(self) -> LocalOps:
        """Return the ops whose groups are axes of a mesh of the program, where they are some."""
        return evolve(self, by_axes=True)

    def _groups(self, emit: LocalEmitter, groups: Groups) -> dict[str, Attribute]:
        return {"replica_groups": self._group_attribute(emit, groups), "use_global_device_ids": UNIT}

    def _group_attribute(self, emit: LocalEmitter, groups: Groups) -> RawAttribute:
        mesh_axes = mesh_groups(groups, emit.program.meshes) if self.by_axes else None
        return dense(groups) if mesh_axes is None else mesh_axes

    def _number(self, emit: LocalEmitter) -> Value:
        """Return the number of the device."""
        name = "stablehlo.replica_id" if self.are_replicas else "stablehlo.partition_id"
        return emit.op(name, (), [tensor(dtype="ui32")]).result

    def _collective(
        self,
        emit: LocalEmitter,
        kind: str,
        value: Value,
        shape: Sequence[int],
        attributes: Mapping[str, Attribute],
        regions: Sequence[Region] = (),
    ) -> Value:
        type_ = _like(value, shape)
        if 0 in type_.shape:
            return self._nothing(emit, type_)
        collective_attributes = dict(attributes)
        if self.are_replicas:
            collective_attributes.pop("use_global_device_ids", None)
        else:
            collective_attributes["channel_handle"] = RawAttribute(
                f"#stablehlo.channel_handle<handle = {emit.next_channel()}, type = 1>"
            )
        return emit.op(f"stablehlo.{kind}", [value], [type_], collective_attributes, regions).result

    def read_collective(self, op: Op) -> LocalCollective | None:
        """Return the collective that an op is, or None."""
        kind = op.name.removeprefix("stablehlo.")
        if kind not in _GROUPS:
            return None
        groups = read_mesh_groups(op) or read_dense(str(op.attributes[_GROUPS[kind]]))
        from shardy_py.ir.interfaces.local_ops import LocalCollective

        return LocalCollective(kind, op.results[0].type, groups, op.location)

    def exchanged(self, op: Op, dim: int, parts: int) -> float | None:
        """Return the elements along a dimension that the local form of an op sends where it is sharded."""
        from shardy_dialects.stablehlo.local.exchanges import exchanged

        return exchanged(op, dim, parts)

    def collected(self, op: Op, dim: int, parts: int) -> float | None:
        """Return how often the local form of an op sends the elements of whole results."""
        from shardy_dialects.stablehlo.local.exchanges import collected

        return collected(op, dim, parts)

    def placed(self, op: Op, number: int, dim: int, parts: int) -> float | None:
        """Return the elements along a dimension that an op sends where an update is sharded as what it goes into."""
        from shardy_dialects.stablehlo.local.exchanges import placed

        return placed(op, number, dim, parts)

    def at_known_place(self, emit: LocalEmitter, op: Op) -> Value | None:
        """Return the result of a read or a write at a place that constants tell, by ops that have it written."""
        from shardy_dialects.stablehlo.local.known_places import at_known_place

        return at_known_place(emit, self, op)

    def composed(self, op: Op, producer: Op) -> tuple[str, Mapping[str, Any]] | None:
        """Return the op that makes of the operands of a producer what an op makes of its result."""
        from shardy_dialects.stablehlo.local.composition import composed

        return composed(op, producer)

    def partial_operands(self, op: Op, combiner: Combiner) -> Sequence[Collection[int]]:
        """Return the groups of operands in which an op may take partial results; its result is partial then, too."""
        from shardy_dialects.stablehlo.local.linearity import partial_operands

        return partial_operands(op, combiner)

    def is_device_number(self, op: Op) -> bool:
        """Return whether an op gives the number of the device."""
        return op.name in ("stablehlo.partition_id", "stablehlo.replica_id")

    def list_groups(self, op: Op) -> None:
        """Write the groups of an op as lists of devices, where it is a collective that has them as axes of a mesh."""
        groups = read_mesh_groups(op) if op.name.removeprefix("stablehlo.") in _GROUPS else None
        if groups is not None:
            op.attributes["replica_groups"] = dense(groups)

    def fold_device(self, program: Program, device: int) -> None:
        """Put the number of a device into a local program, and fold what follows from it."""
        from shardy_dialects.stablehlo.local.device import fold_device

        fold_device(program, device)

    def renumber_devices(self, program: Program, copies: Sequence[Sequence[int]]) -> None:
        """Write a local program for other device numbers."""
        from shardy_dialects.stablehlo.local.renumbering import renumber_devices

        renumber_devices(program, copies)


def _returning(emit: LocalEmitter, run: Callable[[LocalEmitter], Sequence[Value]]) -> Region:
    """Return a region that hands on what a function makes in it."""
    block = Block(emit.program)
    inside = LocalEmitter(emit.program, block, emit.next_channel)
    inside.op("stablehlo.return", run(inside))
    return Region([block])


def _body(emit: LocalEmitter, value: Value, combiner: Combiner) -> list[Region]:
    """Return the region that combines two elements."""
    scalar = _like(value, ())
    block = Block(emit.program, [scalar, scalar])
    inner = LocalEmitter(emit.program, block, emit.next_channel)
    combined = inner.op(COMBINING[combiner], block.arguments, [scalar]).result
    inner.op("stablehlo.return", [combined])
    return [Region([block])]


def _padded(emit: LocalEmitter, value: Value, high: Sequence[int]) -> Value:
    """Return a tensor with zeros at the high ends of its dimensions."""
    scalar = _like(value, ())
    zero = literal(0, scalar.element_type)
    if zero is None:
        raise no_local_form(f"{value.type} cannot be padded")
    text = {"value": RawAttribute(f"dense<{zero}> : {scalar}")}
    fill = emit.op("stablehlo.constant", (), [scalar], text).result
    none = (0,) * len(high)
    attributes = {"edge_padding_low": none, "edge_padding_high": tuple(high), "interior_padding": none}
    shape = [size + more for size, more in zip(value.shape, high, strict=True)]
    return emit.op("stablehlo.pad", [value, fill], [_like(value, shape)], attributes).result


def _spread(emit: LocalEmitter, scalar: Value, type_: Type) -> Value:
    """Return a tensor of one scalar."""
    return emit.op("stablehlo.broadcast_in_dim", [scalar], [type_], {"broadcast_dimensions": array(())}).result


def _like(value: Value, shape: Sequence[int]) -> TensorType:
    """Return a type with the element type of a value."""
    if not isinstance(value.type, TensorType):
        raise TypeError(f"{value.type} is not a tensor")
    return TensorType(tuple(shape), value.type.element_type)
