"""Collectives that undo each other go, those that go together are fused, dots lose those of a collective matmul."""

import pytest

from shardy_py.ir import Builder, tensor, verify
from shardy_py.ir.interfaces.ops import Contraction
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Dialect, Registry
from shardy_py.sharding import Mesh, parse_attribute
from shardy_py.transforms.finish.canonicalize_collectives import (
    COLLECTIVES,
    CanonicalizeCollectivesPass,
    RemoveAllGatherReduceScatterForCMV1Pass,
)
from shardy_py.transforms.finish.collectives.patterns import PATTERNS

T = tensor(16, 16, 16, 16)
MESH = Mesh.of(x=2, y=2, z=4, w=2)
EMPTY = "[{}, {}, {}, {}]"


@pytest.fixture(scope="module")
def context():
    """Return a context with the dialect sdy."""
    return PassContext(Registry.from_entry_points(blocked=["stablehlo"]))


class Chain:
    """A function whose ops are written one by one."""

    def __init__(self, sharding):
        self.b = Builder(mesh=MESH)
        self._function = self.b.function("main", [T])
        (self.argument,) = self._function.__enter__()
        if sharding:
            self.b.shard(self.argument, sharding)

    def gather(self, value, axes, out):
        return self._add("all_gather", value, out, gathering_axes=f"list_of_axis_ref_lists{axes}")

    def slice(self, value, axes, out):
        return self._add("all_slice", value, out, slicing_axes=f"list_of_axis_ref_lists{axes}")

    def reduce(self, value, axes, out):
        return self._add("all_reduce", value, out, reduction_axes=f"axis_ref_list{axes}")

    def exchange(self, value, params, out):
        return self._add("all_to_all", value, out, params=f"all_to_all_param_list{params}")

    def _add(self, name, value, out, **attributes):
        parsed = {key: parse_attribute(f"#sdy<{text}>") for key, text in attributes.items()}
        result = self.b.op(f"sdy.{name}", [value], [T], parsed)
        self.b.shard(result, out)
        return result

    def simplify(self, context, *results):
        """Return the results, run the pass, and return the collectives as text, with operands as numbers."""
        self.b.return_(*results)
        self._function.__exit__(None, None, None)
        CanonicalizeCollectivesPass().run(self.b.program, context)
        verify(self.b.program)
        numbers, lines = {self.argument.id: "arg"}, []
        for op in self.b.program.functions["main"].regions[0].block.ops:
            attributes = [str(value) for value in op.attributes.values()]
            operands = [numbers[value.id] for value in op.operands]
            lines.append(" ".join([op.name.partition(".")[2], *attributes, *operands]))
            if op.results:
                numbers[op.result.id] = str(len(numbers) - 1)
        return lines


def test_collectives_along_no_axes_are_left_out(context):
    """Gathering, slicing and reducing along nothing changes nothing."""
    chain = Chain(EMPTY)
    value = chain.reduce(chain.slice(chain.gather(chain.argument, EMPTY, EMPTY), EMPTY, EMPTY), "{}", EMPTY)
    value = chain._add("reduce_scatter", value, EMPTY, reduce_scatter_axes=f"list_of_axis_ref_lists{EMPTY}")
    assert chain.simplify(context, value) == ["return arg"]


def test_a_permute_to_an_equivalent_sharding_is_left_out(context):
    """Open or closed makes no difference; axes do."""
    chain = Chain('[{"x", ?}, {}, {}, {}]')
    same = chain._add("collective_permute", chain.argument, '[{"x"}, {}, {}, {}]')
    other = chain._add("collective_permute", same, '[{"y"}, {}, {}, {}]')
    assert chain.simplify(context, other) == ["collective_permute arg", "return 0"]


def test_a_slice_undoes_a_gather_of_the_same_axes(context):
    """The gather stays, for it might have other uses; with other axes so does the slice."""
    chain = Chain('[{"x"}, {}, {}, {}]')
    gathered = chain.gather(chain.argument, '[{"x"}, {}, {}, {}]', EMPTY)
    same = chain.slice(gathered, '[{"x"}, {}, {}, {}]', '[{"x"}, {}, {}, {}]')
    other = chain.slice(gathered, '[{}, {"x"}, {}, {}]', '[{}, {"x"}, {}, {}]')
    assert chain.simplify(context, same, other) == [
        'all_gather [{"x"}, {}, {}, {}] arg',
        'all_slice [{}, {"x"}, {}, {}] 0',
        "return arg 1",
    ]


def test_a_reduce_undoes_becoming_unreduced(context):
    """What was replicated is what it was; what was sharded is gathered."""
    chain = Chain('[{"y"}, {}, {}, {}]')
    unreduced = chain._add(
        "replicated_to_unreduced",
        chain.argument,
        '<@mesh, [{"y"}, {}, {}, {}], unreduced={"x"}>',
        axes='axis_ref_list{"x"}',
    )
    first = chain.reduce(unreduced, '{"x"}', '[{"y"}, {}, {}, {}]')
    axes = 'list_of_axis_ref_lists[{"y"}, {}, {}, {}]'
    unreduced = chain._add("sharded_to_unreduced", first, f'<@mesh, {EMPTY}, unreduced={{"y"}}>', axes=axes)
    second = chain.reduce(unreduced, '{"y"}', EMPTY)
    assert chain.simplify(context, second) == [
        'replicated_to_unreduced {"x"} arg',
        'sharded_to_unreduced [{"y"}, {}, {}, {}] arg',
        'all_gather [{"y"}, {}, {}, {}] arg',
        "return 2",
    ]


def test_a_sliced_reduce_is_a_reduce_scatter(context):
    """The axes that are reduced must come first; those after them stay an all-slice."""
    chain = Chain('[{"z":(1)2}, {}, {}, {}]')
    reduced = chain.reduce(chain.argument, '{"x", "z":(2)2}', '[{"z":(1)2}, {}, {}, {}]')
    axes, out = '[{"z":(2)2, "y"}, {"x"}, {}, {}]', '[{"z", "y"}, {"x"}, {}, {}]'
    first, second = (chain.slice(reduced, axes, out) for _ in range(2))
    assert chain.simplify(context, second, first) == [
        'reduce_scatter [{"z":(2)2}, {"x"}, {}, {}] arg',
        'all_slice [{"y"}, {}, {}, {}] 0',
        "return 1 1",
    ]
    scatter, rest, _ = chain.b.program.functions["main"].regions[0].block.ops
    assert str(chain.b.program.sharding(scatter.result)) == '<@mesh, [{"z"}, {"x"}, {}, {}]>'
    assert str(chain.b.program.sharding(rest.result)) == f"<@mesh, {out}>"


@pytest.mark.parametrize("axes", ['[{"y", "x"}, {}, {}, {}]', '[{"y"}, {}, {}, {}]'])
def test_a_reduce_sliced_otherwise_stays(context, axes):
    """An axis that is reduced must not come after one that is not, nor be missing."""
    chain = Chain(EMPTY)
    reduced = chain.reduce(chain.argument, '{"x"}', EMPTY)
    assert chain.simplify(context, chain.slice(reduced, axes, axes)) == [
        'all_reduce {"x"} arg',
        f"all_slice {axes} 0",
        "return 1",
    ]


def test_a_reduce_with_another_use_stays(context):
    """All users must be the same slice."""
    chain = Chain(EMPTY)
    reduced = chain.reduce(chain.argument, '{"x"}', EMPTY)
    axes = '[{"x"}, {}, {}, {}]'
    actual = chain.simplify(context, chain.slice(reduced, axes, axes), reduced)
    assert [line.split()[0] for line in actual] == ["all_reduce", "all_slice", "return"]


def test_all_to_alls_of_other_dimensions_are_fused(context):
    """The parameters are sorted by source dimension; the first of the two is gone."""
    chain = Chain('[{"x"}, {"y"}, {}, {}]')
    first = chain.exchange(chain.argument, '[{"y"}: 1->3]', '[{"x"}, {}, {}, {"y"}]')
    second = chain.exchange(first, '[{"x"}: 0->2]', '[{}, {}, {"x"}, {"y"}]')
    assert chain.simplify(context, second) == ['all_to_all [{"x"}: 0->2, {"y"}: 1->3] arg', "return 0"]


def test_all_to_alls_are_fused_from_the_end(context):
    """Of three, of which the outer two share a dimension, the last two become one."""
    chain = Chain('[{"x"}, {}, {"y"}, {}]')
    first = chain.exchange(chain.argument, '[{"x"}: 0->1]', '[{}, {"x"}, {"y"}, {}]')
    second = chain.exchange(first, '[{"y"}: 2->3]', '[{}, {"x"}, {}, {"y"}]')
    third = chain.exchange(second, '[{"x"}: 1->0]', '[{"x"}, {}, {}, {"y"}]')
    assert chain.simplify(context, third) == [
        'all_to_all [{"x"}: 0->1] arg',
        'all_to_all [{"x"}: 1->0, {"y"}: 2->3] 0',
        "return 1",
    ]


def test_unused_all_to_alls_are_erased(context):
    """An all-to-all whose result is used twice is not fused; one that nobody uses is no use."""
    chain = Chain('[{"x"}, {"y"}, {}, {}]')
    first = chain.exchange(chain.argument, '[{"y"}: 1->3]', '[{"x"}, {}, {}, {"y"}]')
    second = chain.exchange(first, '[{"x"}: 0->2]', '[{}, {}, {"x"}, {"y"}]')
    chain.exchange(second, '[{"x"}: 2->0]', '[{"x"}, {}, {}, {"y"}]')
    actual = chain.simplify(context, first, second)
    assert actual == ['all_to_all [{"y"}: 1->3] arg', 'all_to_all [{"x"}: 0->2] 0', "return 0 1"]


def test_the_patterns_are_those_of_the_collectives() -> None:
    """The pass looks for the ops that have patterns."""
    assert PATTERNS.keys() == COLLECTIVES


MATRIX = tensor(8, 8)


@pytest.fixture(scope="module")
def dot_context():
    """Return a context with a dot."""
    toy = Dialect("toy")
    toy.op("toy.dot", traits=[Contraction])
    return PassContext(Registry.of([toy]))


def run(dot_context, *, gather, uses=1, dot_sharding="[{}, {}]", scatter=True):
    """Run the pass over a dot, and return the names of the ops and the sharding of the dot."""
    b = Builder(mesh=Mesh.of(x=2, y=2))
    with b.function("main", [MATRIX, MATRIX]) as (x, y):
        lhs = b.op("sdy.all_gather", [x], [MATRIX]) if gather else x
        dot = b.op("toy.dot", [lhs, y], [MATRIX])
        if dot_sharding:
            b.shard(dot, dot_sharding)
        result = b.op("sdy.reduce_scatter", [dot], [MATRIX]) if scatter else dot
        if scatter:
            b.shard(result, '[{"x"}, {}]')
        b.return_(result, *[lhs] * (uses - 1))
    RemoveAllGatherReduceScatterForCMV1Pass().run(b.program, dot_context)
    verify(b.program)
    names = [op.name.partition(".")[2] for op in b.program.functions["main"].regions[0].block.ops]
    return names[:-1], str(b.program.sharding(dot))


def test_a_gather_before_a_dot_is_removed(dot_context):
    """Then the reduce-scatter after it stays."""
    assert run(dot_context, gather=True) == (["dot", "reduce_scatter"], "<@mesh, [{}, {}]>")


def test_a_gather_with_another_use_stays(dot_context):
    """Then the reduce-scatter after the dot is removed."""
    assert run(dot_context, gather=True, uses=2) == (["all_gather", "dot"], '<@mesh, [{"x"}, {}]>')


@pytest.mark.parametrize("sharding", ["[{}, {}]", None])
def test_a_dot_takes_over_the_sharding_of_its_reduce_scatter(dot_context, sharding):
    """The reduce-scatter is gone; a dot without sharding is a replicated one."""
    assert run(dot_context, gather=False, dot_sharding=sharding) == (["dot"], '<@mesh, [{"x"}, {}]>')


def test_a_dot_with_unreduced_axes_keeps_its_reduce_scatter(dot_context):
    """Its sharding says that the reduction is still to come."""
    actual, _ = run(dot_context, gather=False, dot_sharding='<@mesh, [{}, {}], unreduced={"x"}>')
    assert actual == ["dot", "reduce_scatter"]


def test_a_dot_alone_is_left_alone(dot_context):
    """There is nothing to remove."""
    assert run(dot_context, gather=False, scatter=False) == (["dot"], "<@mesh, [{}, {}]>")
