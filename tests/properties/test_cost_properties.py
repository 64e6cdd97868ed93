"""Laws of costs: local sizes against a model that places every element, times and bytes that grow with sizes."""

from collections import Counter
from itertools import product
from math import prod

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.cost.estimates import estimate
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.cost.machines.machine import Link, Machine
from shardy_py.ir import Builder, tensor
from shardy_py.plugins import Dialect, Elementwise, Registry
from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.op_attributes import AxisRefList, ListOfAxisRefLists
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding

MESH = Mesh.of(a=2, b=4, c=3)
MACHINE = Machine("m", (Link("x", 24, 10.0, 0.5, "line"),), {"default": 7.0}, 10**9, 5.0)
PARTS = (AxisRef("a"), AxisRef("b", SubAxis(1, 2)), AxisRef("b", SubAxis(2, 2)), AxisRef("c"))


def _registry():
    toy = Dialect("toy")
    toy.op("toy.map", traits=[Elementwise])
    toy.op("toy.dot", rule="i k, k j -> i j", reduction=("k",))
    return Registry.of([toy])


REGISTRY = _registry()


@st.composite
def shardings(draw, rank):
    """Return a sharding in which every dimension has some of the parts of axes."""
    order = draw(st.permutations(PARTS))
    dims = [[] for _ in range(rank)]
    for axis in order:
        where = draw(st.integers(0, rank))
        if where < rank:
            dims[where].append(axis)
    return TensorSharding("mesh", tuple(DimensionSharding(tuple(axes)) for axes in dims))


@st.composite
def sharded_shapes(draw, max_size=9):
    """Return a shape and a sharding of it; sizes need not divide."""
    shape = tuple(draw(st.lists(st.integers(1, max_size), min_size=1, max_size=3)))
    return shape, draw(shardings(len(shape)))


def _largest_shard(shape, sharding):
    """Return the largest number of elements that any device gets, by placing them one by one."""
    shards = [prod(axis.size(MESH) for axis in dim.axes) for dim in sharding.dim_shardings]
    blocks = [-(-size // count) for size, count in zip(shape, shards, strict=True)]
    places = Counter(
        tuple(index // block for index, block in zip(element, blocks, strict=True))
        for element in product(*map(range, shape))
    )
    assert all(place < count for key in places for place, count in zip(key, shards, strict=True))
    return max(places.values())


@given(sharded_shapes())
def test_the_bytes_of_a_value_are_those_of_the_device_with_most_elements(case):
    """Dividing each dimension and rounding up is what the fullest device holds."""
    shape, sharding = case
    b = Builder(mesh=MESH)
    with b.function("main", [tensor(*shape)]) as (x,):
        b.program.shardings[x.id] = sharding
        b.return_(x)
    assert LocalSizes(b.program, REGISTRY, None).bytes(x) == 4 * _largest_shard(shape, sharding)


def _cost(build):
    b = Builder(mesh=MESH)
    build(b)
    return estimate(b.program, b.program.functions["main"], REGISTRY, MACHINE)


@given(sharded_shapes())
def test_an_elementwise_op_costs_what_its_fullest_device_does(case):
    """One operation per element, on the device that has most of them; the balance says what the others miss."""
    shape, sharding = case

    def build(b):
        with b.function("main", [tensor(*shape)]) as (x,):
            b.program.shardings[x.id] = sharding
            y = b.op("toy.map", [x], [tensor(*shape)])
            b.program.shardings[y.id] = sharding
            b.return_(y)

    cost = _cost(build)
    assert cost.flops.value == _largest_shard(shape, sharding)
    assert cost.total_flops.value == prod(shape)
    assert 0 < cost.balance.value <= 1


def _gather_cost(shape, sharding, dim):
    gathered = evolve(
        sharding,
        dim_shardings=tuple(
            DimensionSharding() if index == dim else item for index, item in enumerate(sharding.dim_shardings)
        ),
    )
    axes = tuple(item.axes if index == dim else () for index, item in enumerate(sharding.dim_shardings))

    def build(b):
        with b.function("main", [tensor(*shape)]) as (x,):
            b.program.shardings[x.id] = sharding
            y = b.op("sdy.all_gather", [x], [tensor(*shape)], gathering_axes=ListOfAxisRefLists(axes))
            b.program.shardings[y.id] = gathered
            b.return_(y)
            b.program.shardings[b.program.functions["main"].function_results[0].id] = gathered

    return _cost(build)


@given(sharded_shapes(), st.data())
def test_more_elements_cost_no_less_to_gather(case, data):
    """Bytes, times and memory grow with every dimension."""
    shape, sharding = case
    dim = data.draw(st.integers(0, len(shape) - 1))
    larger = tuple(size + data.draw(st.integers(0, 5)) for size in shape)
    few, many = _gather_cost(shape, sharding, dim), _gather_cost(larger, sharding, dim)
    for name in ("communication_bytes", "seconds", "argument_bytes", "result_bytes", "peak_bytes"):
        assert few.quantities[name].value <= many.quantities[name].value


@given(sharded_shapes(), st.data())
def test_gathering_brings_what_is_missing(case, data):
    """What a device is sent and what it had are at least what it has in the end."""
    shape, sharding = case
    dim = data.draw(st.integers(0, len(shape) - 1))
    cost = _gather_cost(shape, sharding, dim)
    devices = prod(axis.size(MESH) for axis in sharding.dim_shardings[dim].axes)
    assert cost.communication_bytes.value == (devices - 1) * cost.argument_bytes.value
    assert cost.communication_bytes.value + cost.argument_bytes.value >= cost.result_bytes.value


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.data())
def test_a_product_costs_what_its_local_part_does(i, k, j, data):
    """Two operations per local row, column and element of the sum; a sharded sum is added over its axes."""
    axes = [data.draw(st.sampled_from(PARTS))]
    where = data.draw(st.sampled_from("ikj"))

    def spec(names):
        return TensorSharding("mesh", tuple(DimensionSharding(tuple(axes) if name == where else ()) for name in names))

    def build(b):
        with b.function("main", [tensor(i, k), tensor(k, j)]) as (x, w):
            b.shard(x, spec("ik"))
            b.shard(w, spec("kj"))
            y = b.op("toy.dot", [x, w], [tensor(i, j)])
            b.shard(y, spec("ij"))
            if where == "k":
                z = b.op("sdy.all_reduce", [y], [tensor(i, j)], reduction_axes=AxisRefList(tuple(axes)))
                b.shard(z, spec("ij"))
                y = z
            b.return_(y)

    cost = _cost(build)
    sizes = {"i": i, "k": k, "j": j}
    local = {name: -(-size // axes[0].size(MESH)) if name == where else size for name, size in sizes.items()}
    assert cost.flops.value == 2 * prod(local.values()) + (i * j if where == "k" else 0)
    assert cost.total_flops.value == 2 * i * k * j
    assert cost.counts == ({"all_reduce": 1} if where == "k" else {})
