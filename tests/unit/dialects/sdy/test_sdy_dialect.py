"""The bundled sdy and func dialects say what the reference does."""

import pytest

from shardy_dialects.sdy.region_ops import with_free_axes, without_manual_axes
from shardy_py.ir import Builder, Op, Program, tensor
from shardy_py.plugins import (
    DataFlowShardingTransformType,
    Elementwise,
    IsTerminator,
    OpOperand,
    PropagationBarrier,
    Pure,
    RecursiveMemoryEffects,
    Registry,
)
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_manual_axes, parse_tensor_sharding, parse_tensor_sharding_per_value

T = tensor(8, 8)
BEFORE = DataFlowShardingTransformType.BEFORE_EDGE_PROPAGATION
AFTER = DataFlowShardingTransformType.AFTER_EDGE_PROPAGATION


@pytest.fixture(scope="module")
def registry():
    """Return a registry with sdy and func."""
    return Registry.from_entry_points(blocked=["aten", "linalg", "mpmd", "onnx", "stablehlo", "tosa"])


@pytest.fixture
def manual():
    """Return a manual computation over the axis m."""
    b = Builder(mesh=Mesh.of(m=2, a=2, b=2))
    with b.function("main", [T]) as (x,):
        attributes = {
            "in_shardings": parse_tensor_sharding_per_value('<[<@mesh, [{"m", "a", ?}, {?}], unreduced={"b"}>]>'),
            "out_shardings": parse_tensor_sharding_per_value('<[<@mesh, [{?}, {"m", ?}], replicated={"b"}>]>'),
            "manual_axes": parse_manual_axes('{"m"}'),
        }
        with b.region_op("sdy.manual_computation", [x], [T], attributes) as op, b.region(op, [T]) as (argument,):
            b.op("sdy.return", [argument])
        b.return_(op.result)
    return op


def traits(registry, name):
    """Return the traits of a name."""
    return registry.get_traits(Op(Program(), name))


@pytest.mark.parametrize("name", ["sharding_constraint", "reshard", "propagation_barrier"])
def test_some_ops_propagate_like_elementwise_ones(registry, name):
    """Constraints, reshards and barriers are elementwise for the schedule; only constraints have a rule."""
    assert Elementwise in traits(registry, f"sdy.{name}")
    b = Builder()
    with b.function("main", [T]) as (x,):
        y = b.op(f"sdy.{name}", [x], [T])
        b.return_(y)
    rule = registry.get_sharding_rule(y.owner)
    expected = "<([i, j])->([i, j]) {i=8, j=8}>" if name == "sharding_constraint" else "None"
    assert str(rule) == expected


def test_only_the_barrier_is_a_barrier(registry):
    """The engine knows barriers by their trait, not by their name."""
    assert [name for name in registry.ops if PropagationBarrier in traits(registry, name)] == [
        "sdy.propagation_barrier"
    ]


def test_what_may_vanish_when_dead_is_what_the_reference_erases(registry):
    """Asked of the reference: a dead op of these names disappears, one of the other names stays."""
    vanish = {name for name in registry.ops if traits(registry, name) & {Pure, RecursiveMemoryEffects}}
    assert vanish - {"func.return", "sdy.return"} == {
        "builtin.unrealized_conversion_cast",
        "func.constant",
        "sdy.constant",
        "sdy.manual_computation",
        "sdy.named_computation",
        "sdy.propagation_barrier",
        "sdy.reshard",
    }


def test_terminators_are_marked(registry):
    """Both kinds of return end a block."""
    assert {name for name in registry.ops if IsTerminator in traits(registry, name)} == {"func.return", "sdy.return"}


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("sharding_constraint", "sharding"),
        ("reshard", "sharding"),
        ("data_flow_edge", "sharding"),
        ("propagation_barrier", "sdy.sharding"),
        ("func_data_flow_edge", "sdy.sharding"),
        ("all_gather", "out_sharding"),
        ("reduce_scatter", "out_sharding"),
        ("replicated_to_unreduced", "out_sharding"),
    ],
)
def test_each_op_keeps_its_sharding_where_upstream_does(registry, name, attribute):
    """The attribute that holds the sharding of the result depends on the op."""
    assert registry.get_sharding_attribute(Op(Program(), f"sdy.{name}")) == attribute


def test_region_ops_have_an_edge_per_argument_and_result(registry, manual):
    """Operands flow into arguments, returned values into results, each target owns its edge."""
    flow = registry.get_data_flow(manual)
    block = manual.regions[0].block
    argument, result = block.arguments[0], manual.result
    assert list(flow.get_block_argument_edge_owners(manual)) == [argument]
    assert list(flow.get_op_result_edge_owners(manual)) == [result]
    assert list(flow.get_edge_sources(manual, argument)) == [OpOperand(manual, 0)]
    assert list(flow.get_edge_sources(manual, result)) == [OpOperand(block.terminator, 0)]
    assert flow.get_edge_owner_from_source(manual, OpOperand(manual, 0)) is manual.operands[0]
    assert flow.get_edge_owner_from_source(manual, OpOperand(block.terminator, 0)) is result
    assert flow.get_edge_owner_from_target(manual, argument) is argument
    assert flow.should_keep_edge_owner_shardings_divisible(manual)


def test_arguments_of_a_manual_computation_do_not_show_manual_axes(registry, manual):
    """Inside, in_shardings have only free axes; setting them keeps the manual ones."""
    flow = registry.get_data_flow(manual)
    (inner,) = flow.get_block_argument_edge_owner_shardings(manual)
    assert str(inner) == '<@mesh, [{"a", ?}, {?}], unreduced={"b"}>'
    flow.set_block_argument_edge_owner_shardings(manual, [parse_tensor_sharding('<@mesh, [{?}, {"b"}]>')])
    assert str(manual.attributes["in_shardings"]) == '<[<@mesh, [{"m", ?}, {"b"}], unreduced={"b"}>]>'
    (outer,) = flow.get_op_result_edge_owner_shardings(manual)
    flow.set_op_result_edge_owner_shardings(manual, [outer, outer])
    assert len(manual.attributes["out_shardings"].shardings) == 2


def test_targets_are_seen_with_manual_axes_outside_and_without_inside(registry, manual):
    """Argument and result are transformed in opposite directions."""
    flow = registry.get_data_flow(manual)
    argument, result = manual.regions[0].block.arguments[0], manual.result
    inside, outside = (parse_tensor_sharding(f"<@mesh, {dims}>") for dims in ('[{?}, {"a"}]', '[{?}, {"m", "a"}]'))
    assert str(flow.transform_target_sharding(manual, argument, inside, BEFORE)) == (
        '<@mesh, [{"m", ?}, {"a"}], unreduced={"b"}>'
    )
    assert flow.transform_target_sharding(manual, result, outside, BEFORE) == inside
    assert flow.transform_target_sharding(manual, argument, outside, AFTER) == inside
    assert str(flow.transform_target_sharding(manual, result, inside, AFTER)) == (
        '<@mesh, [{?}, {"m", "a"}], replicated={"b"}>'
    )


def test_a_named_computation_may_have_no_shardings(registry):
    """Its shardings are optional, and nothing is transformed."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        with b.region_op("sdy.named_computation", [x], [T]) as op, b.region(op, [T]) as (argument,):
            b.op("sdy.return", [argument])
        b.return_(op.result)
    flow = registry.get_data_flow(op)
    sharding = parse_tensor_sharding('<@mesh, [{"a"}, {}]>')
    assert flow.get_block_argument_edge_owner_shardings(op) == ()
    assert flow.get_op_result_edge_owner_shardings(op) == ()
    assert flow.transform_target_sharding(op, argument, sharding, BEFORE) is sharding
    flow.set_block_argument_edge_owner_shardings(op, [sharding])
    assert flow.get_block_argument_edge_owner_shardings(op) == (sharding,)
    assert not flow.should_keep_edge_owner_shardings_divisible(op)


def test_only_leading_manual_axes_are_dropped_from_dimensions():
    """Manual axes come first in a dimension; replicated and unreduced axes have no order."""
    sharding = parse_tensor_sharding('<@mesh, [{"m", "a"}p1, {?}], replicated={"n", "c"}, unreduced=max{"m", "d"}>')
    free = without_manual_axes(sharding, frozenset("mn"))
    assert str(free) == '<@mesh, [{"a"}p1, {?}], replicated={"c"}, unreduced=max{"d"}>'
    assert without_manual_axes(sharding, frozenset()) is sharding
    again = with_free_axes(sharding, free, frozenset("mn"))
    assert [dim.axes for dim in again.dim_shardings] == [dim.axes for dim in sharding.dim_shardings]
