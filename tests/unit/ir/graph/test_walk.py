"""Ops by name in program order, the values of ops, and the order of uses."""

from __future__ import annotations

import pytest

from shardy_py.ir import Builder, Op, tensor
from shardy_py.ir.graph.walk import (
    all_ops,
    all_values,
    data_flow_ops,
    entry_arguments,
    entry_block,
    inner_first,
    names_with_trait,
    ops_named,
    order_uses,
    outermost,
    own_values,
    region_arguments,
    remove_with_content,
)
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
    actual = ops_named(b.program, "toy.add")
    assert ops_named(b.program, "toy.add") is actual
    loop = ops_named(b.program, "toy.loop")[0]
    inner = loop.regions[0].block
    new = inner.append(Op(b.program, "toy.add", [inner.arguments[0]], [tensor(8)]))
    assert list(ops_named(b.program, "toy.add")) == [*actual[:2], new, actual[2]]
    new.erase()
    assert ops_named(b.program, "toy.add") == actual


def test_what_was_found_holds_while_others_come_and_go(b: Builder) -> None:
    """An op without regions that comes or goes changes nothing about those of other names, and is not missed itself."""
    loops, adds = ops_named(b.program, "toy.loop"), ops_named(b.program, "toy.add")
    everything = list(all_ops(b.program))
    block = loops[0].parent
    assert block is not None
    new = block.insert_before(loops[0], Op(b.program, "toy.new"))
    assert ops_named(b.program, "toy.loop") is loops
    assert ops_named(b.program, "toy.add") is adds
    assert list(ops_named(b.program, "toy.new")) == [new]
    assert list(all_ops(b.program)) == list(b.program.walk())
    new.erase()
    assert ops_named(b.program, "toy.new") == []
    assert all_ops(b.program) == everything
    moved = adds[0]
    block.remove(moved)
    block.append(moved)
    assert list(ops_named(b.program, "toy.add")) == [*adds[1:], moved]
    assert list(all_ops(b.program)) == list(b.program.walk())


def test_regions_move_with_their_op(b: Builder) -> None:
    """Where an op with regions comes, goes or gets a region, what is inside is looked for again."""
    (loop,), adds = ops_named(b.program, "toy.loop"), ops_named(b.program, "toy.add")
    block, (region,) = loop.parent, loop.regions
    assert block is not None
    block.remove(loop)
    assert list(ops_named(b.program, "toy.add")) == [adds[0], adds[2]]
    other = block.append(Op(b.program, "toy.loop"))
    assert len(ops_named(b.program, "toy.add")) == 2
    other.add_region(region)
    assert list(ops_named(b.program, "toy.add")) == [adds[0], adds[2], adds[1]]


def test_remove_with_content(b: Builder) -> None:
    """What is unlinked comes back with what is inside it, and is found no more; an edit before that still counts."""
    (loop,), adds = ops_named(b.program, "toy.loop"), ops_named(b.program, "toy.add")
    everything = list(all_ops(b.program))
    adds[2].erase()
    assert list(remove_with_content(b.program, [loop])) == [loop, adds[1]]
    assert list(ops_named(b.program, "toy.add")) == [adds[0]]
    assert all_ops(b.program) == [op for op in everything if op not in (loop, adds[1], adds[2])]
    assert all_ops(b.program) == list(b.program.walk())


def test_the_outermost_op_is_the_function(b: Builder) -> None:
    """However deep an op stands, the outermost op around it is that of the module, for a function itself the same."""
    function = b.program.functions["main"]
    assert {outermost(op) for op in all_ops(b.program)} == {function}


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


def loop() -> Builder:
    """Return a function with one region op: x, the op's result and region argument, and a function result."""
    b = Builder()
    with b.function("main", [tensor(8)]) as (x,):
        with b.region_op("toy.loop", [x], [tensor(8)]) as op, b.region(op, [tensor(4)]) as (y,):
            b.op("toy.yield", [y])
        b.return_(op.results[0])
    b.declare("outside", [tensor(2)])
    return b


def test_own_values_are_those_of_one_op() -> None:
    """A region op has its results and the arguments of its region; a function also its function results."""
    program = loop().build()
    main = program.functions["main"]
    (op,) = [op for op in main.walk() if op.name == "toy.loop"]
    assert [str(value.type) for value in own_values(op)] == ["tensor<8xf32>", "tensor<4xf32>"]
    assert list(own_values(main)) == [*main.function_results, *entry_arguments(main)]
    assert list(region_arguments(op)) == op.regions[0].blocks[0].arguments


def test_all_values_go_inside() -> None:
    """All values of a program are those of its ops and of the ops in their regions, each once, in program order."""
    program = loop().build()
    actual = list(all_values(program))
    assert [value for op in program.walk() for value in own_values(op) if value not in op.function_results] == actual
    assert len({value.id for value in actual}) == len(actual) == 3


def test_declarations_have_no_entry() -> None:
    """A function without a body has no block, and no arguments."""
    program = loop().build()
    assert entry_block(program.functions["outside"]) is None
    assert list(entry_arguments(program.functions["outside"])) == []
    assert entry_block(program.functions["main"]) is program.functions["main"].regions[0].blocks[0]


def test_an_op_comes_before_those_in_its_regions() -> None:
    """Parsing enters the inner use first; in program order the op around it is first."""
    b = Builder()
    with b.function("main", [tensor(8)]) as (x,):
        with b.region_op("toy.loop", [x, x], [tensor(8)]) as loop, b.region(loop) as ():
            inner = b.emit("toy.op", [x], [tensor(8)])
        last = b.return_(x)
    assert x.uses == [(inner, 0), (loop, 0), (loop, 1), (last, 0)]
    order_uses(b.program)
    assert x.uses == [(loop, 0), (loop, 1), (inner, 0), (last, 0)]
