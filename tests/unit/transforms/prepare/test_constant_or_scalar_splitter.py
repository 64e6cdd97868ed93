"""Every user of a constant gets a copy of its own, in any dialect."""

import pytest

from shardy_py.errors import UnsupportedError
from shardy_py.ir import Builder, tensor, verify
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import (
    AsSdyConstant,
    Broadcast,
    ConstantFoldable,
    ConstantLike,
    Dialect,
    Elementwise,
    IsTerminator,
    Pure,
    Registry,
    UnitedByMlir,
)
from shardy_py.sharding.mesh import Mesh
from shardy_py.transforms.finish.constant_or_scalar_merger import ConstantOrScalarMergerPass
from shardy_py.transforms.prepare.constant_or_scalar_splitter import ConstantOrScalarSplitterPass
from tests.unit.outline import outline, sharding_of

T = tensor(4, 4)
S = tensor()

TOY = Dialect("toy")
TOY.op("toy.zeros", traits=[ConstantLike, Pure])
TOY.op("toy.shared", traits=[ConstantLike, Pure, UnitedByMlir])
TOY.op("toy.literal", traits=[ConstantLike, Pure, AsSdyConstant])
TOY.op("toy.count", traits=[ConstantFoldable, Pure])
TOY.op("toy.window", traits=[ConstantFoldable, Pure])
TOY.op("toy.neg", traits=[Elementwise, Pure])
TOY.op("toy.add", traits=[Elementwise, Pure])
TOY.op("toy.print", traits=[Elementwise])
TOY.op("toy.fill", traits=[Broadcast, Pure])
TOY.op("toy.matmul", traits=[Pure])
TOY.op("func.return", traits=[IsTerminator, Pure])
TOY.op("sdy.return", traits=[IsTerminator, Pure])
TOY.op("sdy.constant", traits=[ConstantLike, Pure])
CONTEXT = PassContext(Registry.of([TOY]))


@pytest.fixture
def b():
    """Return a builder with a mesh."""
    return Builder(mesh=Mesh.of(a=2))


def split(b, name="main"):
    """Split the constants of a program; return the outline of one function."""
    ConstantOrScalarSplitterPass().run(b.program, CONTEXT)
    verify(b.program)
    return outline(b.program.functions[name])


def test_a_constant_that_mlir_unites_is_not_copied(b):
    """As `chlo.constant` in the reference: its users share it, and what is computed from it is not constant."""
    with b.function("main", [T]) as (x,):
        c = b.op("toy.shared", [], [T])
        n = b.op("toy.neg", [c], [T])
        b.return_(b.op("toy.matmul", [n, c, x], [T]), b.op("toy.matmul", [n, x, x], [T]))
    before = outline(b.program.functions["main"])
    assert split(b) == before


@pytest.mark.parametrize("maker", ["toy.zeros", "toy.count"])
def test_a_constant_or_generator_is_copied_per_use(b, maker):
    """Each operand gets a copy, with the sharding of the original, which goes; copies stand where it stood."""
    with b.function("main", [T]) as (x,):
        c = b.op(maker, [], [T])
        b.shard(c, '[{"a"}, {?}]')
        y = b.op("toy.matmul", [x, c], [T])
        b.return_(b.op("toy.add", [c, y], [T]), c)
    assert split(b) == [
        f"0 {maker}",
        f"1 {maker}",
        f"2 {maker}",
        "3 toy.matmul a0 0",
        "4 toy.add 1 3",
        "5 func.return 4 2",
    ]
    constants = [op for op in b.program.walk() if op.name == maker]
    assert [sharding_of(b.program, op.result) for op in constants] == ['<@mesh, [{"a"}, {?}]>'] * 3


def test_literals_become_sdy_constants(b):
    """A constant with the trait becomes an ``sdy.constant`` with its attributes and sharding."""
    with b.function("main") as ():
        c = b.op("toy.literal", [], [T], value=7)
        b.shard(c, "[{}, {}]")
        b.return_(c)
    assert split(b) == ["0 sdy.constant", "1 func.return 0"]
    (constant,) = [op for op in b.program.walk() if op.name == "sdy.constant"]
    assert constant.attributes == {"value": 7}
    assert sharding_of(b.program, constant.result) == "<@mesh, [{}, {}]>"


def test_a_shared_sub_computation_is_copied_as_a_whole(b):
    """What is used twice inside a constant expression is copied once per copy of the expression."""
    with b.function("main", [T]) as (x,):
        c = b.op("toy.zeros", [], [T])
        n = b.op("toy.neg", [c], [T])
        w = b.op("toy.window", [b.op("toy.add", [c, n], [T])], [T])
        b.return_(b.op("toy.matmul", [x, w], [T]), b.op("toy.matmul", [w, x], [T]))
    assert split(b) == [
        "0 toy.zeros",
        "1 toy.zeros",
        "2 toy.neg 0",
        "3 toy.neg 1",
        "4 toy.add 0 2",
        "5 toy.add 1 3",
        "6 toy.window 4",
        "7 toy.window 5",
        "8 toy.matmul a0 6",
        "9 toy.matmul 7 a0",
        "10 func.return 8 9",
    ]


def test_scalars_stay_and_their_expansions_are_copied(b):
    """A scalar constant is kept, a broadcast of any scalar is copied per use."""
    with b.function("main", [S, T]) as (s, x):
        c = b.op("toy.zeros", [], [S])
        filled = b.op("toy.fill", [b.op("toy.add", [s, c], [S])], [T])
        b.return_(b.op("toy.matmul", [filled, filled], [T]), x)
    assert split(b) == [
        "0 toy.zeros",
        "1 toy.add a0 0",
        "2 toy.fill 1",
        "3 toy.fill 1",
        "4 toy.matmul 2 3",
        "5 func.return 4 a1",
    ]


def test_side_effects_end_a_constant_expression(b):
    """An elementwise op that is not pure uses a copy, and is not copied itself."""
    with b.function("main") as ():
        p = b.op("toy.print", [b.op("toy.zeros", [], [T])], [T])
        b.return_(p, p)
    assert split(b) == ["0 toy.zeros", "1 toy.print 0", "2 func.return 1 1"]


def test_sharding_groups_come_along_and_unused_constants_go(b):
    """Each copy is a member of the groups of the original, newest first; constants that only groups use go."""
    with b.function("main", [T]) as (x,):
        c = b.op("toy.zeros", [], [T])
        for number in (1, 2):
            b.op("sdy.sharding_group", [c], group_id=number)
        b.op("sdy.sharding_group", [b.op("toy.neg", [c], [T])], group_id=3)
        b.return_(b.op("toy.matmul", [x, c], [T]))
    assert split(b) == [
        "0 toy.zeros",
        "1 sdy.sharding_group 0",
        "2 sdy.sharding_group 0",
        "3 toy.matmul a0 0",
        "4 func.return 3",
    ]
    assert [op.attributes["group_id"] for op in b.program.walk() if op.name == "sdy.sharding_group"] == [2, 1]


def test_users_in_regions_get_copies_outside(b):
    """A user in a region uses a copy that stands where the constant stands."""
    with b.function("main", [T]) as (x,):
        c = b.op("toy.zeros", [], [T])
        with b.region_op("toy.loop", [x], [T]) as loop, b.region(loop, [T]) as (y,):
            b.op("toy.end", [b.op("toy.matmul", [y, c], [T])])
        b.return_(loop.result, c)
    assert split(b) == [
        "0 toy.zeros",
        "1 toy.zeros",
        "2 toy.loop a0",
        "  3 toy.matmul a1 0",
        "  4 toy.end 3",
        "5 func.return 2 1",
    ]


def test_a_call_of_a_constant_function_is_copied_with_the_function(b):
    """A call counts as a constant if its operands and all in the function do; each copy calls its own function."""
    with b.function("main", [T]) as (x,):
        c = b.call("f", [], [T])
        b.return_(b.op("toy.matmul", [c, c], [T]), b.call("g", [x], [T]))
    with b.function("f") as ():
        b.return_(b.op("toy.neg", [b.op("toy.zeros", [], [T])], [T]))
    with b.function("g", [T]) as (x,):
        b.return_(b.op("toy.matmul", [x, b.op("toy.zeros", [], [T])], [T]))
    assert split(b) == [
        "0 func.call",
        "1 func.call",
        "2 toy.matmul 0 1",
        "3 func.call a0",
        "4 func.return 2 3",
    ]
    calls = [str(op.attributes["callee"]) for op in b.program.walk() if op.name == "func.call"]
    assert calls == ["@f_0", "@f_1", "@g"]
    assert list(b.program.functions) == ["main", "f", "g", "f_0", "f_1"]


def test_a_call_of_a_declared_function_is_no_constant(b):
    """Nobody knows what a function without a body does, so it is called as often as written."""
    b.declare("extern", [], [T])
    with b.function("main") as ():
        c = b.call("extern", [], [T])
        b.return_(c, c)
    assert split(b) == ["0 func.call", "1 func.return 0 0"]
    assert list(b.program.functions) == ["extern", "main"]


def test_recursion_over_constants_is_an_error(b):
    """A function that calls itself cannot be copied; the error names the circle."""
    with b.function("main") as ():
        c = b.call("f", [], [T])
        b.return_(c, c)
    with b.function("f") as ():
        b.return_(b.call("f", [], [T]))
    with pytest.raises(UnsupportedError, match="@f -> @f"):
        split(b)


@pytest.mark.parametrize(("inner", "copies"), [("toy.neg", 2), ("toy.matmul", 1)])
def test_a_named_computation_is_copied_if_it_keeps_constants_constant(b, inner, copies):
    """A computation over constants is copied, body and all, unless an op in it does more."""
    with b.function("main") as ():
        c = b.op("toy.zeros", [], [T])
        with b.region_op("sdy.named_computation", [c], [T], {"name": "f"}) as op, b.region(op, [T]) as (y,):
            b.op("sdy.return", [b.op(inner, [y], [T])])
        b.return_(b.op("toy.matmul", [op.result, op.result], [T]))
    lines = split(b)
    assert sum("sdy.named_computation" in line for line in lines) == copies
    assert sum("toy.zeros" in line for line in lines) == copies


def test_deep_constant_expressions_need_no_deep_stack(b):
    """A chain of elementwise ops on a constant may be longer than the stack of Python."""
    with b.function("main", [T]) as (x,):
        value = b.op("toy.zeros", [], [T])
        for _ in range(3000):
            value = b.op("toy.neg", [value], [T])
        b.return_(b.op("toy.matmul", [x, value], [T]))
    assert len(split(b)) == 3003


def test_merging_undoes_the_splitting_of_constants_sharded_alike(b):
    """Copies with one sharding become one again, those with another stay; what is computed from them stays apart."""
    with b.function("main", [T]) as (x,):
        c = b.op("toy.zeros", [], [T])
        b.return_(*[b.op("toy.matmul", [x, c], [T]) for _ in range(3)])
    split(b)
    constants = [op for op in b.program.walk() if op.name == "toy.zeros"]
    b.shard(constants[1].result, '[{"a"}, {}]')
    ConstantOrScalarMergerPass().run(b.program, CONTEXT)
    verify(b.program)
    assert outline(b.program.functions["main"]) == [
        "0 toy.zeros",
        "1 toy.zeros",
        "2 toy.matmul a0 0",
        "3 toy.matmul a0 1",
        "4 toy.matmul a0 0",
        "5 func.return 2 3 4",
    ]


def test_merging_looks_at_attributes_types_operands_and_regions(b):
    """Constants that differ in anything, or stand in different regions, are not merged."""
    with b.function("main", [S, S]) as (s, t):
        values = [
            b.op("toy.zeros", [], [T], mark=1),
            b.op("toy.zeros", [], [T], mark=True),
            b.op("toy.zeros", [], [tensor(4)], mark=1),
            b.op("toy.fill", [s], [T]),
            b.op("toy.fill", [t], [T]),
            b.op("toy.fill", [s], [T]),
        ]
        with b.region_op("toy.loop", [], []) as loop, b.region(loop):
            b.op("toy.end", [b.op("toy.zeros", [], [T], mark=1)])
        b.return_(*values)
    ConstantOrScalarMergerPass().run(b.program, CONTEXT)
    lines = outline(b.program.functions["main"])
    assert lines[-1] == "8 func.return 0 1 2 3 4 3"
    assert sum("toy.zeros" in line for line in lines) == 4
