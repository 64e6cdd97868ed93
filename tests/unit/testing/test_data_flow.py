"""Checking that the methods of a data flow fit together."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.ir import Builder, tensor
from shardy_py.plugins import OpOperand, Registry
from shardy_py.testing import assert_data_flow


class Reversed(sdy.ShardableDataFlowOpInterface):
    """Hands its operands to its region, and to its results, in reverse order."""

    def get_edge_sources(self, op, owner):
        last = len(op.operands) - 1
        return [OpOperand(op, last - owner.index), OpOperand(op.regions[0].block.terminator, owner.index)]

    def get_edge_owner_from_target(self, op, target):
        return op.results[target.index]

    def get_edge_owner_from_source(self, op, source):
        return op.results[len(op.operands) - 1 - source.number if source.op is op else source.number]

    def get_non_edge_owner_targets(self, op, owner):
        return [op.regions[0].block.arguments[owner.index]]


def reversing(data_flow):
    """An op of two values of different rank, and the registry that knows it."""
    matrix, vector = tensor(8, 4), tensor(8)
    b = Builder()
    with b.function("main", [matrix, vector]) as values:
        with b.region_op("toy.reversed", values, [vector, matrix]) as op, b.region(op, [vector, matrix]) as inner:
            b.op("toy.yield", inner)
        b.return_(*op.results)
    toy = sdy.Dialect("toy")
    toy.op("toy.reversed", data_flow=data_flow)
    return op, Registry.of([toy])


def problems(**methods):
    """What is said about a data flow some of whose methods are others."""
    op, registry = reversing(type("Changed", (Reversed,), methods)())
    with pytest.raises(AssertionError) as caught:
        assert_data_flow(op, registry=registry)
    return str(caught.value).splitlines()[1:]


def test_methods_that_fit_together_pass():
    """A data flow whose sources and targets lead back to their owner is right."""
    op, registry = reversing(Reversed())
    assert_data_flow(op, registry=registry)


def test_sources_in_the_wrong_order_are_found():
    """A source that leads to another owner is named, with the method."""
    actual = problems(get_edge_owner_from_source=lambda self, op, source: op.results[source.number])
    assert actual == [
        "  the edge of result 0: operand 1 leads to result 1: get_edge_owner_from_source",
        "  the edge of result 1: operand 0 leads to result 0: get_edge_owner_from_source",
    ]


def test_what_propagation_would_refuse_is_found():
    """What no program can be propagated with fails here, too, with the same words."""
    actual = problems(
        get_edge_owner_from_target=lambda self, op, target: op.results[target.index] if target.owner is op else None
    )
    assert actual[0].endswith("region argument 0, which is on the edge of result 0")
    assert "has no" not in actual[0]
    (first, _) = problems(get_edge_sources=lambda self, op, owner: [OpOperand(op, owner.index)])
    assert first == ("  get_edge_sources: tensor<8x4xf32> flows into tensor<8xf32>, result 0, which has another rank")


def test_edges_without_sources_and_values_of_two_edges_are_found():
    """An edge needs a source, and a value can be on one edge only."""
    assert problems(get_edge_sources=lambda self, op, owner: []) == [
        f"  the edge of result {number} has no source: get_edge_sources" for number in (0, 1)
    ]
    # Operand 1 is the only one of rank 1, and both owners are.
    twice = problems(
        get_edge_sources=lambda self, op, owner: [OpOperand(op, 1)],
        get_op_result_edge_owners=lambda self, op: [op.results[0], op.regions[0].block.arguments[0]],
        get_edge_owner_from_target=lambda self, op, target: target,
        get_non_edge_owner_targets=lambda self, op, owner: [],
    )
    assert "  operand 1 is in the edge of result 0 and in the edge of argument 0 of region 0" in twice


def make_scan():
    """A loop with a bound, one carried value and one stacked output, and the registry that knows it."""
    b = Builder()
    with b.function("main", [tensor(), tensor(8)]) as values:
        with b.region_op("toy.scan", values, [tensor(8), tensor(3, 8)]) as op, b.region(op, [tensor(8)]) as (row,):
            b.op("toy.yield", [row, row])
        b.return_()
    toy = sdy.Dialect("toy")
    toy.op("toy.scan", data_flow=sdy.LoopDataFlow(first_operand=1, carried=1))
    return op, Registry.of([toy])


def test_values_on_no_edge_are_listed() -> None:
    """Operands, yielded values, arguments and results through which no sharding goes are returned in words."""
    op, registry = make_scan()
    outside = ("operand 0", "operand 1 of toy.yield", "result 1")
    assert assert_data_flow(op, registry=registry) == outside
    assert assert_data_flow(op, registry=registry, on_no_edge=outside) == outside
    assert assert_data_flow(*reversing(Reversed())[:1], registry=reversing(Reversed())[1]) == ()


def test_values_on_no_edge_may_be_restricted() -> None:
    """A value on no edge that an author did not expect there is an error, which names it."""
    op, registry = make_scan()
    with pytest.raises(AssertionError, match=r"values on no edge: operand 1 of toy\.yield$"):
        assert_data_flow(op, registry=registry, on_no_edge=("operand 0", "result 1"))


def make_other():
    """An op elsewhere."""
    b = Builder()
    with b.function("main", [tensor(8)]) as values:
        op = b.emit("toy.other", values)
        b.return_()
    return op


def test_an_op_without_data_flow_is_an_error():
    """There is nothing to check."""
    with pytest.raises(sdy.OptionError, match="no data-flow edges"):
        assert_data_flow(make_other(), registry=Registry.of([]))


def bundled_ops():
    """The data-flow ops of random programs, with the registry that knows them."""
    from shardy_py.api.source import read_program
    from shardy_py.oracle.generate import generate

    features = {"while", "case", "optimization_barrier", "manual_computation", "named_computation", "elementwise"}
    registry = Registry.from_entry_points()
    for seed in range(12):
        for op in read_program(generate(seed, size=30, features=features)).walk():
            if registry.get_data_flow(op) is not None:
                yield op, registry


def test_the_bundled_data_flow_ops_fit_together():
    """Loops, branches and barriers say the same of every edge, in whatever programs.

    So do computations, but that an operand of theirs leads to itself, not to the argument that owns its edge: the
    reference has it so, and results depend on that.
    """
    pytest.importorskip("jaxlib")
    checked, quirks = set(), set()
    for op, registry in bundled_ops():
        checked.add(op.name)
        try:
            assert_data_flow(op, registry=registry)
        except AssertionError as error:
            quirks.add(op.name)
            lines = str(error).splitlines()[1:]
            assert all(": operand " in line and line.endswith(": get_edge_owner_from_source") for line in lines)
    assert quirks == {"sdy.manual_computation", "sdy.named_computation"}
    assert checked - quirks == {"stablehlo.while", "stablehlo.case", "stablehlo.optimization_barrier"}
