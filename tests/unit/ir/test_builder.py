"""Programs written in Python are what MLIR makes of the same text."""

import pytest

from shardy_py.errors import VerificationError
from shardy_py.ir import Builder, SymbolRef, tensor, verify
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

T = tensor(8, 16)


def test_a_program_reads_as_it_is_written():
    """Functions, ops, attributes, shardings and meshes land where they belong."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    with b.function("main", [T, tensor(16, 4)]) as (x, y):
        z = b.op("toy.dot", [x, y], [tensor(8, 4)], contracting=(1, 0))
        b.shard(x, '[{"a"}, {}]')
        b.return_(z, shardings=['<@mesh, [{?}, {"b"}]>'])
    program = b.program
    main = program.functions["main"]
    assert [op.name for op in program.walk()] == ["sdy.mesh", "func.func", "toy.dot", "func.return"]
    assert program.meshes == {"mesh": Mesh.of(a=2, b=2)}
    assert z.owner.attributes == {"contracting": (1, 0)}
    assert str(program.sharding(x)) == '<@mesh, [{"a"}, {}]>'
    assert str(program.sharding(main.function_results[0])) == '<@mesh, [{?}, {"b"}]>'
    assert [value.type for value in main.function_results] == [tensor(8, 4)]
    verify(program)


def test_the_number_of_results_decides_what_op_returns():
    """One result comes as a value, any other number as a tuple."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        one = b.op("toy.one", [x], [T])
        none, two = b.op("toy.none", [x]), b.op("toy.two", [x], [T, T])
        b.return_()
    assert one.index == 0
    assert none == ()
    assert [value.index for value in two] == [0, 1]


def test_region_ops_enter_their_uses_after_their_regions():
    """Use lists are in the order in which MLIR creates the uses, ids in the order of the text."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        before = b.emit("toy.before", [x])
        with b.region_op("toy.loop", [x], [T]) as loop:
            with b.region(loop) as ():
                inner = b.emit("toy.inner", [x])
            with b.region(loop) as ():
                second = b.emit("toy.second", [x])
        after = b.emit("toy.after", [x])
        b.return_(loop.result)
    assert [op for op, _ in x.uses] == [before, inner, second, loop, after]
    ids = [op.id for op in b.program.walk()]
    assert ids == sorted(ids)
    assert len(loop.regions) == 2
    verify(b.program)


def test_calls_may_come_before_their_function():
    """A call refers to a function by name; a declaration has results and no body."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        b.return_(b.call("f", [x], [T]), b.call("g", [x], [T]))
    with b.function("f", [T]) as (x,):
        b.return_(x)
    g = b.declare("g", [T], [T])
    call = next(op for op in b.program.walk() if op.name == "func.call")
    assert call.attributes["callee"] == SymbolRef("f")
    assert str(g.attributes["function_type"]) == "(tensor<8x16xf32>) -> tensor<8x16xf32>"
    assert g.regions[0].blocks == []
    verify(b.program)


def test_a_constraint_has_its_sharding_in_both_places():
    """The attribute of a sharding constraint and the table say the same."""
    b = Builder(mesh=Mesh.of(a=2))
    sharding = TensorSharding.fully_open("mesh", 2)
    with b.function("main", [T]) as (x,):
        y = b.constrain(x, sharding)
        b.return_(y)
    assert y.owner.attributes["sharding"] == sharding
    assert b.program.sharding(y) == sharding


def test_a_function_ends_with_return():
    """A body without return, and a return outside a function, are errors."""
    b = Builder()
    with pytest.raises(VerificationError, match="function @main has no return"), b.function("main"):
        pass
    with pytest.raises(VerificationError, match="outside a function"):
        b.return_()
