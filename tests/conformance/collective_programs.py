"""Random programs of reshards, and of collectives, as text; many small functions in one module."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from math import lcm

from attrs import define, field

from shardy_py.sharding import AxisRef, DimensionSharding, Mesh, SubAxis, TensorSharding
from shardy_py.sharding.axes import add_axis_or_merge
from shardy_py.sharding.op_attributes import AllToAllParam, AllToAllParamList, AxisRefList, ListOfAxisRefLists

AxesPerDim = list[list[AxisRef]]


def merged(axes: Iterable[AxisRef], mesh: Mesh) -> tuple[AxisRef, ...]:
    """Return axes with consecutive parts merged."""
    result: list[AxisRef] = []
    for axis in axes:
        add_axis_or_merge(result, axis, mesh)
    return tuple(result)


def random_parts(rng: random.Random, mesh: Mesh) -> list[AxisRef]:
    """Return the axes of a mesh in random order, some of them split at random."""
    parts: list[AxisRef] = []
    for axis in mesh.axes:
        factors = [size for size in range(2, axis.size) if axis.size % size == 0]
        if not factors or rng.random() < 0.6:
            parts.append(AxisRef(axis.name))
            continue
        size = rng.choice(factors)
        parts += [AxisRef(axis.name, SubAxis(1, size)), AxisRef(axis.name, SubAxis(size, axis.size // size))]
    rng.shuffle(parts)
    return parts


def random_sharding(rng: random.Random, mesh: Mesh, rank: int, name: str) -> TensorSharding:
    """Return a sharding by most of the axes of a mesh."""
    dims: AxesPerDim = [[] for _ in range(rank)]
    for part in random_parts(rng, mesh):
        if rng.random() < 0.75:
            rng.choice(dims).append(part)
    return TensorSharding(name, tuple(DimensionSharding(merged(dim, mesh)) for dim in dims))


def random_reshard(rng: random.Random, number: int, sizes: Sequence[int]) -> str:
    """Return a mesh and a function with a reshard, mostly of a shape that both shardings divide."""
    mesh = Mesh.of({name: rng.choice(sizes) for name in "xyzw"[: rng.randint(1, 4)]})
    rank = rng.randint(1, 4)
    source, target = (random_sharding(rng, mesh, rank, f"mesh{number}") for _ in range(2))
    shape = [
        lcm(first.sharded_size(mesh), second.sharded_size(mesh)) if rng.random() < 0.8 else rng.choice((1, 2, 6, 64))
        for first, second in zip(source.dim_shardings, target.dim_shardings, strict=True)
    ]
    type_ = f"tensor<{'x'.join(map(str, shape))}xf32>"
    return f"""sdy.mesh @mesh{number} = {mesh}
func.func @f{number}(%arg0: {type_} {{sdy.sharding = #sdy.sharding{source}}}) -> {type_} {{
  %0 = sdy.reshard %arg0 {target} : {type_}
  return %0 : {type_}
}}
"""


@define(eq=False)
class Tensor:
    """A value of a program of collectives."""

    name: str
    dims: AxesPerDim
    unreduced: list[AxisRef] = field(factory=list)


MESH = Mesh.of(x=2, y=2, z=4, w=2, v=4)
PARTS = [
    AxisRef("x"),
    AxisRef("y"),
    AxisRef("z", SubAxis(1, 2)),
    AxisRef("z", SubAxis(2, 2)),
    AxisRef("w"),
    AxisRef("v"),
]
RANK = 3
TYPE = "tensor<64x64x64xf32>"


def _lists(dims: AxesPerDim) -> ListOfAxisRefLists:
    return ListOfAxisRefLists(tuple(merged(dim, MESH) for dim in dims))


def _list(axes: Iterable[AxisRef]) -> AxisRefList:
    return AxisRefList(merged(sorted(axes, key=MESH.sort_key), MESH))


class CollectiveProgram:
    """A function that is a random chain of collectives, with branches, pairs that go together, and dead ends."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        argument = Tensor("%arg0", [[] for _ in range(RANK)])
        for part in self.some(PARTS, 0.4):
            rng.choice(argument.dims).append(part)
        self.tensors = [argument]
        for _ in range(rng.randint(1, 9)):
            source = self.tensors[-1] if rng.random() < 0.75 else rng.choice(self.tensors)
            rng.choice(STEPS)(self, source)

    def some(self, parts: Iterable[AxisRef], share: float) -> list[AxisRef]:
        """Return a random share of some axes."""
        return [part for part in parts if self.rng.random() < share]

    def free(self, source: Tensor) -> list[AxisRef]:
        """Return the axes a tensor does not use."""
        used = {axis for dim in source.dims for axis in dim} | set(source.unreduced)
        return [part for part in PARTS if part not in used]

    def spread(self, axes: Iterable[AxisRef]) -> AxesPerDim:
        """Return axes distributed over the dimensions."""
        dims: AxesPerDim = [[] for _ in range(RANK)]
        for axis in axes:
            self.rng.choice(dims).append(axis)
        return dims

    def suffixes(self, source: Tensor) -> tuple[AxesPerDim, AxesPerDim]:
        """Return the dimensions of a tensor cut in two at random."""
        cuts = [self.rng.randint(0, len(dim)) for dim in source.dims]
        pairs = list(zip(source.dims, cuts, strict=True))
        return [dim[:cut] for dim, cut in pairs], [dim[cut:] for dim, cut in pairs]

    def add(self, op: str, source: Tensor, dims: AxesPerDim, unreduced: Iterable[AxisRef]) -> Tensor:
        """Add an op and return its result."""
        result = Tensor(f"%{len(self.lines)}", dims, list(unreduced))
        self.lines.append(f"  {result.name} = {op} {source.name} out_sharding={self.sharding(result)} : {TYPE}")
        self.tensors.append(result)
        return result

    def sharding(self, tensor: Tensor) -> TensorSharding:
        """Return the sharding of a tensor."""
        dims = tuple(DimensionSharding(merged(dim, MESH)) for dim in tensor.dims)
        return TensorSharding("mesh", dims, unreduced_axes=_list(tensor.unreduced).axes)

    def text(self, number: int) -> str:
        """Return the function."""
        results = [self.tensors[-1], self.rng.choice(self.tensors)][: self.rng.randint(1, 2)]
        types = ", ".join([TYPE] * len(results))
        argument = f"%arg0: {TYPE} {{sdy.sharding = #sdy.sharding{self.sharding(self.tensors[0])}}}"
        names = ", ".join(result.name for result in results)
        return "\n".join(
            [f"func.func @f{number}({argument}) -> ({types}) {{", *self.lines, f"  return {names} : {types}", "}", ""]
        )


def _gather(program: CollectiveProgram, source: Tensor) -> None:
    remaining, gathered = program.suffixes(source)
    result = program.add(f"sdy.all_gather {_lists(gathered)}", source, remaining, source.unreduced)
    if program.rng.random() < 0.5:
        program.add(f"sdy.all_slice {_lists(gathered)}", result, source.dims, source.unreduced)


def _slice(program: CollectiveProgram, source: Tensor) -> None:
    added = program.spread(program.some(program.free(source), 0.4))
    dims = [dim + more for dim, more in zip(source.dims, added, strict=True)]
    program.add(
        f"sdy.{program.rng.choice(('all_slice', 'reduce_scatter'))} {_lists(added)}", source, dims, source.unreduced
    )


def _exchange(program: CollectiveProgram, source: Tensor) -> None:
    sharded = [dim for dim in range(RANK) if source.dims[dim]]
    if not sharded:
        return
    src = program.rng.choice(sharded)
    tgt = program.rng.choice([dim for dim in range(RANK) if dim != src])
    cut = program.rng.randrange(len(source.dims[src]))
    dims = [list(dim) for dim in source.dims]
    moved = dims[src][cut:]
    del dims[src][cut:]
    dims[tgt] += moved
    params = AllToAllParamList((AllToAllParam(merged(moved, MESH), src, tgt),))
    program.add(f"sdy.all_to_all {params}", source, dims, source.unreduced)


def _permute(program: CollectiveProgram, source: Tensor) -> None:
    dims = [program.rng.sample(dim, len(dim)) for dim in source.dims]
    program.add("sdy.collective_permute", source, dims, source.unreduced)


def _reduce(program: CollectiveProgram, source: Tensor) -> None:
    reduced = program.some([*program.free(source), *source.unreduced], 0.35)
    left = [axis for axis in source.unreduced if axis not in reduced]
    result = program.add(f"sdy.all_reduce {_list(reduced)}", source, source.dims, left)
    more = program.some([axis for axis in program.free(result) if axis not in reduced], 0.3)
    added = program.spread([*program.rng.sample(reduced, len(reduced)), *more])
    dims = [dim + axes for dim, axes in zip(source.dims, added, strict=True)]
    for _ in range(program.rng.choice((0, 1, 1, 2, 3))):
        program.add(f"sdy.all_slice {_lists(added)}", result, dims, left)


def _unreduce(program: CollectiveProgram, source: Tensor) -> None:
    axes = program.some(program.free(source), 0.4)
    if axes:
        unreduced = [*source.unreduced, *axes]
        result = program.add(f"sdy.replicated_to_unreduced {_list(axes)}", source, source.dims, unreduced)
        program.add(f"sdy.all_reduce {_list(axes)}", result, source.dims, source.unreduced)


def _unreduce_sharded(program: CollectiveProgram, source: Tensor) -> None:
    remaining, moved = program.suffixes(source)
    axes = [axis for dim in moved for axis in dim]
    if axes:
        unreduced = [*source.unreduced, *axes]
        result = program.add(f"sdy.sharded_to_unreduced {_lists(moved)}", source, remaining, unreduced)
        program.add(f"sdy.all_reduce {_list(axes)}", result, remaining, source.unreduced)


STEPS: Sequence[Callable[[CollectiveProgram, Tensor], None]] = (
    *(_gather, _slice, _permute, _unreduce, _unreduce_sharded),
    *(_exchange, _exchange, _exchange, _reduce, _reduce),
)


def collectives_module(rng: random.Random, functions: int) -> str:
    """Return a module of random chains of collectives."""
    texts = [CollectiveProgram(rng).text(number) for number in range(functions)]
    return "".join([f"sdy.mesh @mesh = {MESH}\n", *texts])


def reshards_module(rng: random.Random, functions: int, sizes: Sequence[int]) -> str:
    """Return a module of random reshards over meshes with axes of the given sizes."""
    return "".join(random_reshard(rng, number, sizes) for number in range(functions))
