"""Ops that are described by their indexing maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shardy_py.errors import PluginError, ShardyError
from shardy_py.indexing import OpIndexing, op_maps
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import tensor
from shardy_py.plugins import Contraction, Dialect, Registry


def op_of(indexing: Callable[[Op], Any], **more: Any) -> tuple[Registry, Op]:
    """A registry and an op `toy.op` from 8x16 to 16x8."""
    toy = Dialect("toy")
    toy.op("toy.op", indexing=indexing, **more)
    b = Builder()
    with b.function("main", [tensor(8, 16)]) as (x,):
        value = b.op("toy.op", [x], [tensor(16, 8)])
        b.return_(value)
    op = value.defining_op
    assert op is not None
    return Registry.of([toy]), op


def transposed(op: Op) -> list[Any]:
    """The map of a transpose."""
    return [op_maps.transpose(op.results[0].shape, [1, 0])]


def test_the_rule_follows_from_the_maps() -> None:
    """An op with indexing maps and without a rule is sharded as its maps say."""
    registry, op = op_of(transposed)
    assert registry.get_indexing(op) == OpIndexing(transposed(op))
    assert str(registry.get_sharding_rule(op)) == "<([j, i])->([i, j]) {i=16, j=8}>"


def test_maps_go_both_ways() -> None:
    """An op may give the maps from its operands, too; without them there are none."""
    back = op_maps.transpose_to_output((8, 16), [1, 0])
    registry, op = op_of(lambda op: OpIndexing(transposed(op), [back]))
    indexing = registry.get_indexing(op)
    assert indexing is not None
    assert indexing.input_to_output == (back,)
    registry, op = op_of(transposed)
    assert registry.get_indexing(op).input_to_output == (None,)  # type: ignore[union-attr]


def test_a_rule_that_is_given_counts() -> None:
    """An op's own rule takes precedence over the one that its maps give."""
    registry, op = op_of(transposed, rule="i j -> k l", need_replication=("i", "j", "k", "l"))
    rule = registry.get_sharding_rule(op)
    assert rule is not None
    assert len(rule.need_replication_factors) == 4


def test_contractions_sum() -> None:
    """A contraction adds up what its range variables run over."""

    def summed(op: Op) -> list[Any]:
        return [op_maps.reduce((16, 8), (16, 8, 4), [2])]

    toy = Dialect("toy")
    toy.op("toy.sum", indexing=summed, traits=[Contraction])
    b = Builder()
    with b.function("main", [tensor(16, 8, 4)]) as (x,):
        value = b.op("toy.sum", [x], [tensor(16, 8)])
        b.return_(value)
    rule = Registry.of([toy]).get_sharding_rule(value.defining_op)  # type: ignore[arg-type]
    assert str(rule) == "<([i, j, k])->([i, j]) {i=16, j=8, k=4} reduction={k}>"


@pytest.mark.parametrize(
    ("indexing", "message"),
    [
        (lambda op: [], "returned 0 indexing maps for 1 operands"),
        (lambda op: ["(d0) -> (d0)"], "not an IndexingMap"),
        (lambda op: [op_maps.identity((16,))], "over 1 dimensions, the first result has 2"),
        (lambda op: [op_maps.scalar((16, 8))], "operand 0 has shape [8, 16]"),
        (lambda op: OpIndexing(transposed(op), [3]), "gives 3, not an IndexingMap"),
        (lambda op: OpIndexing(transposed(op), []), "returned 0 indexing maps for 1 operands"),
        (lambda op: OpIndexing(transposed(op), [op_maps.identity((8,))]), "over 1 dimensions, operand 0 has 2"),
        (lambda op: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_maps_that_do_not_fit_are_refused(indexing: Callable[[Op], Any], message: str) -> None:
    """Maps that do not fit the op, and functions that fail, are errors that name the op."""
    registry, op = op_of(indexing)
    with pytest.raises(ShardyError) as error:
        registry.get_sharding_rule(op)
    assert message in str(error.value)
    assert "toy.op" in str(error.value)


@pytest.mark.parametrize("indexing", [3, transposed.__class__, lambda: []])
def test_what_is_no_function_of_the_op_is_refused(indexing: Any) -> None:
    """`indexing` is a function of the op."""
    with pytest.raises(PluginError, match="invalid-indexing"):
        Dialect("toy").op("toy.op", indexing=indexing)
