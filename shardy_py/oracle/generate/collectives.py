"""Features ``collectives`` (of StableHLO) and ``sdy_collectives`` (with the shardings their verifier wants)."""

from __future__ import annotations

from math import prod

from shardy_py.ir.graph.op_names import ALL_SLICE, REDUCE_SCATTER
from shardy_py.oracle.generate.program import BlockBuilder, GeneratedValue, ResultType, scalar_region
from shardy_py.oracle.generate.shardings import Axis

_GROUPS = {"replica_groups": "dense<[[0, 1]]> : tensor<1x2xi64>"}
Dims = list[list[Axis]]


def _even(block: BlockBuilder) -> GeneratedValue | None:
    return block.find(lambda item: item.rank >= 1 and any(size % 2 == 0 and size > 0 for size in item.dims))


def all_gather(block: BlockBuilder) -> None:
    """Twice as large along one dimension."""
    value = block.value(lambda item: min(item.dims) > 0, low=1)
    dim = block.choices.integer(0, value.rank - 1)
    if value.dims[dim] == 0:
        return
    shape = tuple(size * 2 if index == dim else size for index, size in enumerate(value.dims))
    block.op("stablehlo.all_gather", [value], [(shape, value.dtype)], {"all_gather_dim": f"{dim} : i64", **_GROUPS})


def all_to_all(block: BlockBuilder) -> None:
    """Half as large along one dimension, twice along another (or the same)."""
    value = _even(block)
    if value is None:
        return
    split = block.choices.pick([dim for dim, size in enumerate(value.dims) if size % 2 == 0])
    concat = block.choices.integer(0, value.rank - 1)
    shape = list(value.dims)
    shape[split] //= 2
    shape[concat] *= 2
    attributes = {
        "split_dimension": f"{split} : i64",
        "concat_dimension": f"{concat} : i64",
        "split_count": "2 : i64",
        **_GROUPS,
    }
    block.op("stablehlo.all_to_all", [value], [(tuple(shape), value.dtype)], attributes)


def all_reduce(block: BlockBuilder) -> None:
    """A sum over devices."""
    value = block.floats()
    region = scalar_region(block, [value.dtype], ["stablehlo.add"])
    block.op("stablehlo.all_reduce", [value], [(value.shape, value.dtype)], _GROUPS, regions=[region])


def reduce_scatter(block: BlockBuilder) -> None:
    """A sum over devices, of which each keeps half."""
    value = _even(block)
    if value is None or value.dtype == "i1" or value.dtype.startswith("complex"):
        return
    dim = block.choices.pick([index for index, size in enumerate(value.dims) if size % 2 == 0])
    shape = tuple(size // 2 if index == dim else size for index, size in enumerate(value.dims))
    region = scalar_region(block, [value.dtype], ["stablehlo.add"])
    attributes = {"scatter_dimension": f"{dim} : i64", **_GROUPS}
    block.op("stablehlo.reduce_scatter", [value], [(shape, value.dtype)], attributes, regions=[region])


def same_shape(block: BlockBuilder) -> None:
    """Collectives that keep the shape."""
    value = block.value()
    if block.choices.chance(50):
        pairs = {"source_target_pairs": "dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"}
        block.op("stablehlo.collective_permute", [value], [(value.shape, value.dtype)], pairs)
    else:
        block.op("stablehlo.collective_broadcast", [value], [(value.shape, value.dtype)], _GROUPS)


def _axes(items: list[Axis]) -> str:
    return "{" + ", ".join(f'"{axis.name}"' for axis in items) + "}"


def _list(dims: Dims) -> str:
    return "[" + ", ".join(map(_axes, dims)) + "]"


def _sharding(block: BlockBuilder, dims: Dims, unreduced: list[Axis]) -> str:
    tail = f", unreduced={_axes(unreduced)}" if unreduced else ""
    return f"<{block.module.mesh.reference}, {_list(dims)}{tail}>"


def sdy_collective(block: BlockBuilder) -> None:
    """A collective of Shardy on a value with a closed sharding, so that propagation cannot make it invalid."""
    choices, mesh = block.choices, block.module.mesh
    free = choices.shuffled([axis for axis in mesh.axes if axis.name not in block.without])
    source = block.value(low=1)
    dims: Dims = [[] for _ in source.dims]
    for dim, size in enumerate(source.dims):
        while free and choices.chance(45) and size and size % (prod(a.size for a in dims[dim]) * free[0].size) == 0:
            dims[dim].append(free.pop(0))
    attribute = {"sdy.sharding": f"#sdy.sharding_per_value<[{_sharding(block, dims, [])}]>"}
    kind: ResultType = (source.shape, source.dtype)
    target = {"call_target_name": '"sdy_testonly"', **attribute}
    value = block.op("stablehlo.custom_call", [source], [kind], target, sharded=False, keep=False)[0]
    text = choices.pick((_gather, _slice, _move, _permute, _reduce, _unreduce))(block, value, dims, free)
    if text:
        block.raw(text.split()[0], [value], [kind], f"{text} : {value.type}")


def _gather(block: BlockBuilder, value: GeneratedValue, dims: Dims, free: list[Axis]) -> str:
    counts = [block.choices.integer(0, len(axes)) for axes in dims]
    gathered = [axes[len(axes) - count :] for axes, count in zip(dims, counts, strict=True)]
    remaining = [axes[: len(axes) - count] for axes, count in zip(dims, counts, strict=True)]
    if block.choices.chance(30):
        unreduced = sorted((axis for axes in gathered for axis in axes), key=block.module.mesh.axes.index)
        sharding = _sharding(block, remaining, unreduced)
        return f"sdy.sharded_to_unreduced {_list(gathered)} {value.name} out_sharding={sharding}"
    return f"sdy.all_gather {_list(gathered)} {value.name} out_sharding={_sharding(block, remaining, [])}"


def _slice(block: BlockBuilder, value: GeneratedValue, dims: Dims, free: list[Axis]) -> str:
    added: Dims = [[] for _ in dims]
    for axis in free:
        if block.choices.chance(60):
            block.choices.pick(added).append(axis)
    result = [[*old, *new] for old, new in zip(dims, added, strict=True)]
    name = block.choices.pick((ALL_SLICE, REDUCE_SCATTER))
    return f"{name} {_list(added)} {value.name} out_sharding={_sharding(block, result, [])}"


def _move(block: BlockBuilder, value: GeneratedValue, dims: Dims, free: list[Axis]) -> str:
    sources = [dim for dim, axes in enumerate(dims) if axes]
    if not sources or len(dims) < 2:
        return ""
    source = block.choices.pick(sources)
    target = block.choices.pick([dim for dim in range(len(dims)) if dim != source])
    count = block.choices.integer(1, len(dims[source]))
    moved = dims[source][-count:]
    result = [list(axes) for axes in dims]
    result[source] = dims[source][:-count]
    result[target] = [*dims[target], *moved]
    return (
        f"sdy.all_to_all [{_axes(moved)}: {source}->{target}] {value.name} out_sharding={_sharding(block, result, [])}"
    )


def _permute(block: BlockBuilder, value: GeneratedValue, dims: Dims, free: list[Axis]) -> str:
    names = {
        axis.size: [other for other in block.module.mesh.axes if other.size == axis.size]
        for axes in dims
        for axis in axes
    }
    usable = {
        size: block.choices.shuffled([a for a in axes if a.name not in block.without]) for size, axes in names.items()
    }
    result = [block.choices.shuffled([usable[axis.size].pop() for axis in axes]) for axes in dims]
    return f"sdy.collective_permute {value.name} out_sharding={_sharding(block, result, [])}"


def _reduce(block: BlockBuilder, value: GeneratedValue, dims: Dims, free: list[Axis]) -> str:
    reduced = block.choices.some(sorted(free, key=block.module.mesh.axes.index))
    return f"sdy.all_reduce {_axes(reduced)} {value.name} out_sharding={_sharding(block, dims, [])}"


def _unreduce(block: BlockBuilder, value: GeneratedValue, dims: Dims, free: list[Axis]) -> str:
    if not free:
        return ""
    axes = block.choices.some(sorted(free, key=block.module.mesh.axes.index), low=1)
    return f"sdy.replicated_to_unreduced {_axes(axes)} {value.name} out_sharding={_sharding(block, dims, axes)}"


EMITTERS = {
    "collectives": ((2, all_gather), (1, all_to_all), (1, all_reduce), (1, reduce_scatter), (1, same_shape)),
    "sdy_collectives": ((2, sdy_collective),),
}
