"""The graph keeps uses and links right under every change."""

import random

import pytest

from shardy_py.ir import Builder, Op, Program, tensor, verify

T = tensor(8)


@pytest.fixture
def builder():
    """Return a builder inside no function."""
    return Builder()


def names(block):
    """Return the op names of a block."""
    return [op.name for op in block.ops]


def test_replacing_all_uses_reverses_their_order_as_in_mlir(builder):
    """The uses move newest first behind those the new value has, except the uses of the one op left out."""
    with builder.function("main", [T, T]) as (x, y):
        users = [builder.emit(f"toy.use{number}", [x], [T]) for number in range(4)]
        other = builder.emit("toy.other", [y], [T])
        x.replace_all_uses_with(y, except_op=users[1])
        assert x.uses == [(users[1], 0)]
        assert y.uses == [(other, 0), (users[3], 0), (users[2], 0), (users[0], 0)]
        assert y.users == [users[0], users[2], users[3], other]
        builder.return_()
    verify(builder.program)


def test_set_operand_moves_one_use(builder):
    """A replaced operand leaves one use list and enters the other as its newest use."""
    with builder.function("main", [T, T]) as (x, y):
        op = builder.emit("toy.add", [x, x], [T])
        op.set_operand(1, y)
        assert x.uses == [(op, 0)]
        assert y.uses == [(op, 1)]
        builder.return_()
    verify(builder.program)


def test_an_op_with_users_cannot_be_erased(builder):
    """Erasing an op whose result is used is an error; erasing in the right order works."""
    with builder.function("main", [T]) as (x,):
        first = builder.emit("toy.f", [x], [T])
        second = builder.emit("toy.g", first.results, [T])
        builder.return_()
    with pytest.raises(ValueError, match="still used"):
        first.erase()
    second.erase()
    first.erase()
    assert x.uses == []
    assert names(x.owner) == ["func.return"]
    verify(builder.program)


def test_erasing_a_region_op_erases_what_is_inside(builder):
    """All uses by nested ops go, too, in whatever order the nested ops use one another."""
    with builder.function("main", [T]) as (x,):
        with builder.region_op("toy.loop", [x], [T]) as loop, builder.region(loop, [T]) as (argument,):
            y = builder.op("toy.f", [argument], [T])
            z = builder.op("toy.g", [x, y], [T])
            builder.op("toy.yield", [z])
        builder.return_()
    loop.erase()
    assert x.uses == []
    verify(builder.program)


def test_ops_may_be_inserted_anywhere_and_removed():
    """The links of a block stay right under any sequence of insertions and removals."""
    generator = random.Random(7)
    program = Program()
    expected = []
    for number in range(200):
        if expected and generator.random() < 0.3:
            op = expected.pop(generator.randrange(len(expected)))
            program.body.remove(op)
            assert op.parent is None
            continue
        position = generator.randrange(len(expected) + 1)
        op = Op(program, f"toy.op{number}")
        if position == len(expected):
            program.body.append(op)
        else:
            program.body.insert_before(expected[position], op)
        expected.insert(position, op)
        assert list(program.body.ops) == expected
    assert program.body.first is expected[0]
    assert program.body.last is expected[-1]
    verify(program)


def test_the_current_op_may_be_erased_while_iterating(builder):
    """`Block.ops` goes on after the op it gave was erased."""
    with builder.function("main", [T]) as (x,):
        for _ in range(4):
            builder.emit("toy.dead", [x], [T])
        builder.return_()
    for op in x.owner.ops:
        if op.name == "toy.dead":
            op.erase()
    assert names(x.owner) == ["func.return"]


def test_an_anchor_must_be_in_the_block():
    """Inserting relative to an op of another block is an error."""
    program = Program()
    with pytest.raises(ValueError, match="not in this block"):
        program.body.insert_before(Op(program, "toy.a"), Op(program, "toy.b"))
