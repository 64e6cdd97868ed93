"""Ops by name."""

from __future__ import annotations

import pytest

from shardy_py.ir import Builder, Op, tensor
from shardy_py.ir.finding import all_ops, data_flow_ops, inner_first, names_with_trait, ops_named
from shardy_py.plugins import Dialect, Elementwise, Pure, Registry


@pytest.fixture
def b() -> Builder:
    """Return a builder with a loop that has an op of the same name before, in and behind it."""
    b = Builder()
    with b.function("main", [tensor(8)]) as (x,):
        first = b.emit("toy.add", [x, x], [tensor(8)])
        with b.region_op("toy.loop", [first.result], [tensor(8)]) as loop, b.region(loop, [tensor(8)]) as (y,):
            b.op("toy.add", [y, x], [tensor(8)])
        b.op("toy.add", loop.results * 2, [tensor(8)])
        b.return_(x)
    return b


def test_ops_come_in_program_order(b: Builder) -> None:
    """All ops are those of a walk, and those of some names the same without the others."""
    walked = list(b.program.walk())
    assert all_ops(b.program) == walked
    assert list(ops_named(b.program, "toy.add")) == [op for op in walked if op.name == "toy.add"]
    assert [op.name for op in ops_named(b.program, "toy.loop", "func.return", "toy.none")] == [
        "toy.loop",
        "func.return",
    ]
    assert ops_named(b.program, "toy.none") == ()


def test_what_was_found_holds_until_ops_come_or_go(b: Builder) -> None:
    """The same question gives the same list, until an op is inserted, moved or erased anywhere."""
    found = ops_named(b.program, "toy.add")
    assert ops_named(b.program, "toy.add") is found
    loop = ops_named(b.program, "toy.loop")[0]
    inner = loop.regions[0].block
    new = inner.append(Op(b.program, "toy.add", [inner.arguments[0]], [tensor(8)]))
    assert list(ops_named(b.program, "toy.add")) == [*found[:2], new, found[2]]
    new.erase()
    assert ops_named(b.program, "toy.add") == found


def test_inner_ops_first(b: Builder) -> None:
    """Each op comes after those inside it, ops side by side stay in order."""
    ops = inner_first(all_ops(b.program))
    assert [op.name for op in ops] == ["toy.add", "toy.add", "toy.loop", "toy.add", "func.return", "func.func"]
    assert sorted(op.id for op in ops) == sorted(op.id for op in all_ops(b.program))


def test_names_by_what_dialects_say(b: Builder) -> None:
    """A trait that depends on the op counts as one its name may have."""
    toy = Dialect("toy")
    toy.op("toy.add", traits=[Elementwise])
    toy.op("toy.loop", traits_of=lambda op: [])
    registry = Registry.of([toy])
    assert names_with_trait(b.program, registry, Elementwise) == {"toy.add", "toy.loop"}
    assert names_with_trait(b.program, registry, Pure) == {"toy.loop"}
    assert data_flow_ops(b.program, registry) == ()
