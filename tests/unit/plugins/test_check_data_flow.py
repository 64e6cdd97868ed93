"""What a dialect says about data flow has to fit its ops."""

from __future__ import annotations

import pytest

from shardy_py.errors import PluginError
from shardy_py.ir import Builder, tensor
from shardy_py.plugins import Dialect, LoopDataFlow, OpOperand, Registry, ShardableDataFlowOpInterface
from shardy_py.plugins.check_data_flow import check_data_flows

T = tensor(8, 4)


class Loop(LoopDataFlow):
    """An ordinary loop."""


class NoOwner(Loop):
    def get_op_result_edge_owners(self, op):
        return op.operands


class Fails(Loop):
    def get_edge_sources(self, op, owner):
        raise KeyError("bound")


class ForeignSource(Loop):
    def get_edge_sources(self, op, owner):
        return [OpOperand(op.parent.last, 0)]


class Values(Loop):
    def get_edge_sources(self, op, owner):
        return list(op.operands)


class OtherOwner(Loop):
    def get_edge_owner_from_target(self, op, target):
        return op.results[1]


class ForeignTarget(Loop):
    def get_non_edge_owner_targets(self, op, owner):
        return [op.operands[0]]


class Unwritten(ShardableDataFlowOpInterface):
    """Lacks what has no default."""


def check_flow(flow, types=(T, T)):
    """Check a loop over two values that has a data flow."""
    b = Builder()
    with b.function("main", list(types)) as values:
        with b.region_op("toy.loop", values, [T, T]) as loop, b.region(loop, [T, T]) as inner:
            b.op("toy.yield", list(inner))
        b.return_(*loop.results)
    toy = Dialect("toy")
    toy.op("toy.loop", data_flow=flow)
    check_data_flows(b.program, Registry.of([toy]))


def test_what_fits_passes() -> None:
    """An ordinary loop is as it should be."""
    check_flow(LoopDataFlow())


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (LoopDataFlow(first_operand=1), "get_edge_sources names operand 2 of toy.loop, of 2"),
        (NoOwner(), "owns an edge, but is neither a result nor an argument of a region"),
        (Fails(), "get_edge_sources raised KeyError: 'bound'"),
        (ForeignSource(), "names an operand of func.return, which is not in the op"),
        (Values(), "not an OpOperand"),
        (OtherOwner(), "another owner for result 0, which is on the edge of result 0"),
        (ForeignTarget(), "get_non_edge_owner_targets: .* is neither a result nor a region argument"),
    ],
)
def test_what_does_not_fit_is_named(flow, message) -> None:
    """The error names the op, what is wrong, and whose fault it is."""
    with pytest.raises(PluginError, match=message) as caught:
        check_flow(flow)
    (problem,) = caught.value.diagnostics
    assert problem.op == "toy.loop"
    assert "defined by dialect 'toy'" in problem.hint


def test_what_has_no_default_is_asked_for_where_the_op_is_defined() -> None:
    """A data flow without one of the three methods that must be written is refused with the method."""
    with pytest.raises(PluginError, match="the data flow, Unwritten, lacks the method get_edge_sources"):
        check_flow(Unwritten())


def test_ranks_of_an_edge_are_alike() -> None:
    """What is on one edge has one sharding, so one rank."""
    with pytest.raises(PluginError, match="tensor<8xf32> flows into tensor<8x4xf32>, result 1, which has another rank"):
        check_flow(LoopDataFlow(), (T, tensor(8)))


@pytest.mark.parametrize("shape", [(4, 8), (8, 5)])
def test_sizes_of_an_edge_are_alike(shape) -> None:
    """What is on one edge has one sharding, so the same sizes."""
    message = f"tensor<{shape[0]}x{shape[1]}xf32> flows into tensor<8x4xf32>, result 1, which has other sizes"
    with pytest.raises(PluginError, match=message):
        check_flow(LoopDataFlow(), (T, tensor(*shape)))


def test_a_dynamic_size_is_any_size() -> None:
    """A size that is not known yet may be that of the others on the edge."""
    check_flow(LoopDataFlow(), (T, tensor(None, 4)))


class Transforming(LoopDataFlow):
    """Sees the values inside with other axes than outside, so with other sizes."""

    def transform_target_sharding(self, op, target, sharding, transform):
        return sharding


def test_values_seen_with_other_axes_may_have_other_sizes() -> None:
    """Where shardings are transformed between inside and outside, as for manual axes, only ranks are alike."""
    check_flow(Transforming(), (T, tensor(16, 4)))


class FirstRegion(LoopDataFlow):
    """Only the arguments of the first region are on edges, but those of others have owners."""

    def get_non_edge_owner_targets(self, op, owner):
        return [op.regions[0].block.arguments[owner.index]]


@pytest.mark.parametrize("flow", [LoopDataFlow(yielding=(0,)), FirstRegion(yielding=(0,))])
def test_an_argument_of_another_rank_has_no_owner(flow) -> None:
    """A region that takes no carried values, such as a combiner, needs another data flow than that of loops."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        with b.region_op("toy.fold", [x], [T]) as fold:
            with b.region(fold, [T]) as body:
                b.op("toy.yield", list(body))
            with b.region(fold, [tensor(), tensor()]) as combined:
                b.op("toy.yield", [combined[0]])
        b.return_(fold.result)
    toy = Dialect("toy")
    toy.op("toy.fold", data_flow=flow)
    message = "region argument 0, tensor<f32>, has another rank than its owner, result 0, tensor<8x4xf32>"
    with pytest.raises(PluginError, match=message):
        check_data_flows(b.program, Registry.of([toy]))


def test_a_class_is_no_data_flow() -> None:
    """Forgetting to call the class is an error where the op is defined, as is anything else."""
    with pytest.raises(PluginError, match="the class LoopDataFlow, not an object"):
        Dialect("toy").op("toy.loop", data_flow=LoopDataFlow)
    with pytest.raises(PluginError, match="does not describe data flow"):
        Dialect("toy").op("toy.loop", data_flow="loop")
