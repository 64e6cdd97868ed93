"""Constraints act on what they constrain, where nothing speaks against it."""

from __future__ import annotations

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.sharding import Mesh
from shardy_py.sharding.tensor import TensorShardingPerValue
from shardy_py.transforms.prepare.apply_sharding_constraints import ApplyShardingConstraintsPass

T = tensor(8, 8)
CLOSED_A = '[{"a"}, {}]'
CLOSED_B = '[{"b"}, {}]'


def apply(b: Builder) -> None:
    """Run the pass over what was built."""
    ApplyShardingConstraintsPass().run(b.program, PassContext(Registry.from_entry_points()))


def text(b: Builder, value: Value) -> str | None:
    """Return the sharding of a value as text."""
    actual = b.program.sharding(value)
    return None if actual is None else str(actual)


def new_builder() -> Builder:
    """Return a builder with a mesh of two axes."""
    return Builder(mesh=Mesh.of(a=2, b=2))


def test_a_closed_constraint_sets_the_sharding_of_its_input() -> None:
    """The constrained value gets the sharding; an open constraint gives it none."""
    for dims, expected in ((CLOSED_A, '<@mesh, [{"a"}, {}]>'), ('[{"a", ?}, {}]', None)):
        b = new_builder()
        with b.function("main", [T]) as (x,):
            y = b.op("toy.op", [x], [T])
            b.return_(b.constrain(y, dims))
        apply(b)
        assert text(b, y) == expected


def test_a_value_that_has_a_sharding_keeps_it() -> None:
    """What the user said about the value itself comes first."""
    b = new_builder()
    with b.function("main", [T]) as (x,):
        b.shard(x, CLOSED_B)
        b.return_(b.constrain(x, CLOSED_A))
    apply(b)
    assert text(b, x) == '<@mesh, [{"b"}, {}]>'


def test_constraints_that_disagree_are_not_applied() -> None:
    """Two different constraints on one value leave it to propagation."""
    b = new_builder()
    with b.function("main", [T]) as (x,):
        b.return_(b.constrain(x, CLOSED_A), b.constrain(x, CLOSED_B))
    apply(b)
    assert text(b, x) is None


def test_later_uses_go_through_the_last_constraint_of_a_chain() -> None:
    """Ops after a chain use its end instead of its input, returns do not."""
    b = new_builder()
    with b.function("main", [T]) as (x,):
        early = b.emit("toy.op", [x], [T])
        first = b.constrain(x, CLOSED_A)
        last = b.constrain(first, CLOSED_B)
        late = b.emit("toy.op", [x], [T])
        returned = b.return_(x, early.result, late.result)
    apply(b)
    assert list(early.operands) == [x]
    assert list(late.operands) == [last]
    assert returned.operands[0] is x


def test_operands_of_a_manual_computation_get_its_in_shardings() -> None:
    """An in-sharding counts as a constraint on the operand."""
    b = new_builder()
    with b.function("main", [T]) as (x,):
        y = b.op("toy.op", [x], [T])
        shardings = TensorShardingPerValue((b.sharding(CLOSED_A),))
        with (
            b.region_op(
                "sdy.manual_computation", [y], [T], {"in_shardings": shardings, "out_shardings": shardings}
            ) as manual,
            b.region(manual, [T]) as (inner,),
        ):
            b.emit("sdy.return", [inner])
        b.return_(manual.result)
    apply(b)
    assert text(b, y) == '<@mesh, [{"a"}, {}]>'


def test_users_of_an_edge_go_through_the_constraint_instead() -> None:
    """The targets of an edge are not restricted: the constraint moves behind the edge and takes over its users."""
    b = new_builder()
    with b.function("main", [T]) as (x,):
        (barrier,) = b.emit("stablehlo.optimization_barrier", [x], [T]).results
        edge: Op = b.emit("sdy.data_flow_edge", [barrier], [T])
        user = b.emit("toy.op", [edge.result], [T])
        constraint = b.constrain(edge.result, CLOSED_A)
        b.return_(user.result, constraint)
    apply(b)
    assert text(b, edge.result) is None
    assert list(user.operands) == [constraint]
    assert edge.next is constraint.defining_op
