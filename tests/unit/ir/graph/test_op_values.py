"""The values of ops and of all ops inside."""

from __future__ import annotations

from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.op_values import all_values, entry_arguments, entry_block, own_values, region_arguments
from shardy_py.ir.graph.types import tensor


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
    found = list(all_values(program))
    assert [value for op in program.walk() for value in own_values(op) if value not in op.function_results] == found
    assert len({value.id for value in found}) == len(found) == 3


def test_declarations_have_no_entry() -> None:
    """A function without a body has no block, and no arguments."""
    program = loop().build()
    assert entry_block(program.functions["outside"]) is None
    assert list(entry_arguments(program.functions["outside"])) == []
    assert entry_block(program.functions["main"]) is program.functions["main"].regions[0].blocks[0]
