"""Compilation of programs, their ops and edges to problems."""

from __future__ import annotations

import pytest

from shardy_py.errors import RuleError, UnsupportedError
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.shardings import load_shardings
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.interfaces.ops import Pure
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Dialect, Registry
from shardy_py.propagation import Direction, compile_program, propagate_program
from shardy_py.propagation.compile import has_multi_use, parse_direction
from shardy_py.propagation.problem import NO_RULE
from shardy_py.sharding import Mesh
from shardy_py.sharding.parse import parse_op_sharding_rule
from shardy_py.sharding.tensor import ManualAxes, TensorShardingPerValue
from shardy_py.transforms.prepare.add_data_flow_edges import AddDataFlowEdgesPass
from tests.unit.propagation.toy import toy_registry

T, SCALAR = tensor(8, 8), tensor()


def test_the_steps_are_the_ops_with_a_rule_in_program_order() -> None:
    """An op without a rule is no step; each step has the slots of its operands, then results."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        y = b.op("toy.neg", [x], [T])
        unknown = b.op("toy.unknown", [y], [T])
        z = b.op("toy.add", [y, unknown], [T])
        b.return_(z)
    problem = compile_program(b.program, toy_registry())
    assert [op.name for op in problem.step_ops] == ["toy.neg", "toy.add"]
    slots = [[problem.slot_of[value.id] for value in values] for values in ((x, y), (y, unknown, z))]
    assert [list(actual) for actual in problem.step_slots] == slots


def test_equal_ops_are_one_step_group() -> None:
    """The uses of operands tell step groups apart, and a group knows its steps."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T, T, T]) as (x, y, z):
        first, second = b.op("toy.effect", [x], [T]), b.op("toy.effect", [y], [T])
        third = b.op("toy.effect", [z], [T])
        b.return_(b.op("toy.add", [z, z], [T]))
    problem = compile_program(b.program, toy_registry())
    step_of = {op.id: step for step, op in enumerate(problem.step_ops)}
    first_group, two, three = (problem.step_groups[step_of[value.owning_op.id]] for value in (first, second, third))
    assert first_group == two != three
    assert not problem.groups[first_group].multi_use
    assert problem.groups[three].multi_use
    for group, steps in enumerate(problem.group_steps):
        assert steps == [step for step, actual in enumerate(problem.step_groups) if actual == group]


def test_unused_ops_without_a_rule_are_steps_that_may_be_erased() -> None:
    """They have no slots, and are in the plan of the removal."""
    b = Builder(mesh=Mesh.of(a=2))
    toy = Dialect("bare")
    toy.op("bare.pure", traits=[Pure])
    with b.function("main", [T]) as (x,):
        b.op("bare.pure", [x], [T])
        b.return_(x)
    problem = compile_program(b.program, Registry.of([toy]))
    assert problem.step_slots == [()]
    assert problem.groups[problem.step_groups[0]].rule == NO_RULE
    assert problem.removal is not None
    assert [op.name for op in problem.removal.ops] == ["bare.pure"]


def test_a_rule_must_fit_its_op() -> None:
    """A rule for another number of tensors is an error at the op."""
    toy = Dialect("bare")
    toy.op("bare.f", rule=lambda op: parse_op_sharding_rule("<([i])->([i]) {i=8}>"))
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [tensor(8), tensor(8)]) as (x, y):
        b.return_(b.op("bare.f", [x, y], [tensor(8)]))
    with pytest.raises((RuleError, UnsupportedError)) as caught:
        compile_program(b.program, Registry.of([toy]))
    assert caught.value.diagnostics[0].op == "bare.f"


def test_an_edge_of_nothing_is_an_error() -> None:
    """A data-flow edge belongs to an op with data flow."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        b.return_(b.op("sdy.data_flow_edge", [x], [T]))
    with pytest.raises(UnsupportedError) as caught:
        compile_program(b.program, toy_registry())
    assert caught.value.diagnostics[0].code == "dangling-edge"


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        (0, Direction.NONE),
        (3, Direction.BOTH),
        ("FORWARD", Direction.FORWARD),
        (RawAttribute("#sdy<propagation_direction BACKWARD>"), Direction.BACKWARD),
        ("NONE", Direction.NONE),
    ],
)
def test_the_direction_of_a_barrier_is_a_number_or_a_name(attribute: object, expected: Direction) -> None:
    """As a text, the name may stand inside of an attribute's notation."""
    assert parse_direction(attribute) is expected


def test_scalars_do_not_count_as_used_several_times() -> None:
    """Only operands with dimensions make an op one whose operands have several uses."""
    b = Builder()
    with b.function("main", [T, SCALAR]) as (x, s):
        single = b.op("toy.pair", [x, s], [T]).owning_op
        b.op("toy.other", [s], [T])
        b.return_()
        assert not has_multi_use(single)
        assert has_multi_use(single, lambda value: 2)
        assert not has_multi_use(single, lambda value: 1 if value is x else 5)


def test_manual_axes_reach_the_operand() -> None:
    """Inside, a manual axis is not seen; the operand outside gets it all the same."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [tensor(8, 8)]) as (x,):
        outside = TensorShardingPerValue((b.sharding('[{"a", ?}, {?}]'),))
        attributes = {"in_shardings": outside, "out_shardings": outside, "manual_axes": ManualAxes(("a",))}
        with b.region_op("sdy.manual_computation", [x], [tensor(8, 8)], attributes) as manual:  # noqa: SIM117
            with b.region(manual, [tensor(4, 8)]) as (inner,):
                b.emit("sdy.return", [inner])
        b.return_(manual.result)
    registry = Registry.from_entry_points()
    load_shardings(b.program, registry)
    AddDataFlowEdgesPass().run(b.program, PassContext(registry))
    propagate_program(b.program, registry)
    assert str(b.program.sharding(x)) == '<@mesh, [{"a", ?}, {?}]>'


def test_a_group_gets_what_flows_out_of_a_manual_computation_without_its_axes() -> None:
    """A result in a group takes the manual axes itself; the other members get only what was propagated."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    with b.function("main", [tensor(8), tensor(16)]) as (x, other):
        inside = TensorShardingPerValue((b.sharding('[{"b", ?}]'),))
        outside = TensorShardingPerValue((b.sharding('[{"a", ?}]'),))
        attributes = {"in_shardings": inside, "out_shardings": outside, "manual_axes": ManualAxes(("a",))}
        with b.region_op("sdy.manual_computation", [x], [tensor(16)], attributes) as manual:  # noqa: SIM117
            with b.region(manual, [tensor(8)]) as (inner,):
                b.emit("sdy.return", [inner])
        for value in (manual.result, other):
            b.emit("sdy.sharding_group", [value], attributes={"group_id": 0})
        b.return_()
    registry = Registry.from_entry_points()
    load_shardings(b.program, registry)
    AddDataFlowEdgesPass().run(b.program, PassContext(registry))
    edge = manual.result.uses[0][0]
    propagate_program(b.program, registry)
    assert str(b.program.sharding(edge.result)) == '<@mesh, [{"a", "b", ?}]>'
    assert str(b.program.sharding(other)) == '<@mesh, [{"b", ?}]>'
