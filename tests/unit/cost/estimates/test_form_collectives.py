"""What local forms send is estimated as it is counted, for ops of any dialect."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.cost.estimates import transfers
from shardy_py.cost.session import Session
from tests.unit.dialects.tosa.modules import MODULES


def _blur() -> tuple[sdy.Dialect, sdy.Registry]:
    """Return a dialect with an op of which each row reads three rows, and a registry that can communicate."""
    image = sdy.Dialect("image")

    def local_blur(op, shard):
        rows, parts = shard.result_shape()[0], shard.parts(shard.result_shardings[0], 0)
        return sdy.with_window(shard, 0, 0, [part * rows - 1 for part in range(parts)], rows + 2).copy()

    image.op("image.blur", rule="i j -> i j", permutation="i", traits=[sdy.plugins.Pure], local=local_blur)
    registry = sdy.Registry.from_entry_points(plugins=[_Plugin(image)])
    return image, registry


class _Plugin:
    def __init__(self, dialect: sdy.Dialect) -> None:
        self._dialect = dialect

    @sdy.hookimpl
    def shardy_register_dialects(self):
        return [self._dialect]


def _blurred() -> sdy.Builder:
    builder = sdy.Builder(mesh={"rows": 4})
    with builder.function("main", [sdy.tensor(16, 8)]) as (x,):
        builder.shard(x, '[{"rows"}, {}]')
        builder.return_(builder.op("image.blur", [x], [sdy.tensor(16, 8)]))
    return builder


def test_a_halo_of_an_author_is_estimated_as_it_is_counted():
    """Three of four devices send a row of 8 floats to either side, in an estimate as in the local program."""
    session = Session.open(_blurred().program, registry=_blur()[1])
    solution = session.solve()
    estimated, counted = session.price(solution, profile="none").cost, session.evaluate().cost
    assert counted.is_counted
    assert estimated.communication_bytes.value == counted.communication_bytes.value == 2 * 8 * 4 * 3 / 4
    assert {item.kind for item in estimated.transfers} == {"collective_permute"}
    assert {item.axes for item in estimated.transfers} == {'{"rows"}'}


class _KnownCost(sdy.plugins.CostOpInterface):
    def get_flops(self, op):
        return 1000.0


def test_an_op_whose_form_sums_over_devices_keeps_its_own_work():
    """What the form sends stands beside the operations of the op, also where that is a sum."""
    image = sdy.Dialect("image")

    def local_sum(op, shard):
        return [shard.ops.all_reduce(shard.emit, shard.operands[0], ((0, 1, 2, 3),), sdy.Combiner.ADD)]

    traits = [sdy.plugins.Pure]
    image.op("image.blur", rule="i j -> i j", permutation="i", traits=traits, local=local_sum, cost=_KnownCost())
    registry = sdy.Registry.from_entry_points(plugins=[_Plugin(image)])
    session = Session.open(_blurred().program, registry=registry)
    cost = session.price(session.solve(), profile="none").cost
    assert {item.kind for item in cost.transfers} == {"all_reduce"}
    assert (cost.total_flops.value, cost.flops.value) == (1000.0, 250.0)


def test_an_estimate_leaves_the_program_as_it_was():
    """The local form runs beside the program: nothing of it stays there."""
    session = Session.open(_blurred().program, registry=_blur()[1])
    solution = session.solve()
    evaluation = session.price(solution)
    names = [op.name for op in evaluation.program.walk()]
    ids = {value.id for op in evaluation.program.walk() for value in (*op.results, *op.function_results)}
    assert "stablehlo.collective_permute" not in names
    arguments = {
        value.id for op in evaluation.program.walk() for region in op.regions for value in region.block.arguments
    }
    assert evaluation.program.shardings.keys() <= ids | arguments


def test_without_ops_for_communication_nothing_is_priced():
    """A registry without any `LocalOps` gives an estimate all the same."""
    image, _ = _blur()
    session = Session.open(_blurred().program, registry=sdy.Registry.of([image]))
    assert session.price(session.solve()).cost.communication_bytes.value == 0


def test_halos_of_tosa_are_estimated_as_they_are_counted():
    """Where nothing but halos is sent, estimate and local program agree, in bytes and in time."""
    pytest.importorskip("jaxlib", reason="MLIR reads the modules")
    session = Session.open(MODULES["depthwise"][0], {"d": 2, "m": 4}, in_shardings={0: (None, "m", "d", None)})
    solution = session.solve()
    estimated, counted = session.price(solution, "cpu-8", profile="none").cost, session.evaluate(machine="cpu-8").cost
    assert counted.communication_bytes.value
    assert estimated.communication_bytes.value == counted.communication_bytes.value
    assert estimated.communication_seconds.value == pytest.approx(counted.communication_seconds.value)


def test_the_plan_of_a_local_program_counts_halos():
    """An image so small that its halos are more than itself is gathered before the first convolution."""
    pytest.importorskip("jaxlib", reason="MLIR reads the modules")
    session = Session.open(MODULES["strided"][0], {"d": 2, "m": 2}, in_shardings={0: (None, "m", "d", None)})
    halos = session.price(session.solve(), profile="none").cost.communication_bytes.value
    assert session.evaluate().cost.communication_bytes.value < halos


def test_ops_for_communication_are_searched_once(monkeypatch):
    """The search goes through the whole program, so that an estimate does not search for each op."""
    builder = sdy.Builder(mesh={"rows": 4})
    with builder.function("main", [sdy.tensor(16, 8)]) as (x,):
        builder.shard(x, '[{"rows"}, {}]')
        for _ in range(3):
            x = builder.op("image.blur", [x], [sdy.tensor(16, 8)])
        builder.return_(x)
    session = Session.open(builder.program, registry=_blur()[1])
    solution, searches = session.solve(), []
    search = transfers.find_local_ops
    monkeypatch.setattr(transfers, "find_local_ops", lambda *args: searches.append(args) or search(*args))
    assert session.price(solution, profile="none").cost.communication_bytes.value == 3 * 2 * 8 * 4 * 3 / 4
    assert len(searches) == 1
