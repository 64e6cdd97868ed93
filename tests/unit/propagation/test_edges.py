"""Edges whose target looks different from its sources."""

from __future__ import annotations

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.shardings import load_shardings
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.propagation import propagate_program
from shardy_py.sharding import Mesh
from shardy_py.sharding.tensor import ManualAxes, TensorShardingPerValue
from shardy_py.transforms.prepare.add_data_flow_edges import AddDataFlowEdgesPass


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
