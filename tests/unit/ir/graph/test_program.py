"""The graph keeps uses and links right under every change, and copies share nothing that changes."""

import random

import pytest

from shardy_py.frontends.mlir import import_module, parse_module
from shardy_py.ir import Builder, Op, Program, tensor, verify
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.oracle.generate import generate
from tests.unit.outline import listing

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


def test_replacing_the_uses_by_all_ops_keeps_those_that_the_new_value_has(builder):
    """Where no op is left out, too, the uses come in reverse order behind those there, and the old value has none."""
    with builder.function("main", [T, T]) as (x, y):
        users = [builder.emit(f"toy.use{number}", [x], [T]) for number in range(3)]
        other = builder.emit("toy.other", [y], [T])
        x.replace_all_uses_with(y)
        assert x.uses == []
        assert y.uses == [(other, 0), *[(user, 0) for user in reversed(users)]]
        assert all(user.operands[0] is y for user in users)
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


pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

LOOP = """
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "toy.loop"(%arg0) ({
  ^bb0(%arg1: tensor<4xf32>):
    %1 = "toy.add"(%arg1, %arg0) {mark = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "toy.yield"(%1) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def _read(text):
    return import_module(parse_module(text))


def _add_of(program):
    return next(op for op in program.walk() if op.name == "toy.add")


@pytest.mark.parametrize("text", [LOOP, *(generate(seed) for seed in range(12))])
def test_a_copy_has_all_that_the_original_has(text):
    """Ops, attributes, ids, order of uses and links are those of the original; the copy is a valid program."""
    program = _read(text)
    copied = copy_program(program)
    assert listing(copied, ids=True) == listing(program, ids=True)
    assert [op.id for op in copied.walk()] == [op.id for op in program.walk()]
    verify(copied)


def test_no_object_is_shared():
    """No op or value of a copy is one of the original, and none points back to it."""
    program = _read(LOOP)
    originals = {id(op) for op in program.walk()}
    copied = copy_program(program)
    for op in copied.walk():
        assert op.program is copied
        assert id(op) not in originals
        assert all(id(user) not in originals for value in op.results for user, _ in value.uses)
        assert all(value.owning_op.program is copied for value in op.operands)


def test_changes_of_a_copy_stay_there():
    """Erasing ops, setting attributes and shardings in a copy leaves the original, and what is written back, alone."""
    program = _read(LOOP)
    before = listing(program, ids=True)
    copied = copy_program(program)
    _add_of(copied).attributes["mark"] = 2
    loop = next(op for op in copied.walk() if op.name == "toy.loop")
    loop.result.replace_all_uses_with(loop.operands[0])
    loop.erase()
    assert listing(program, ids=True) == before
    assert not program.origin.changed


def test_new_ids_of_a_copy_are_new():
    """An op made in a copy gets ids that no op or value of the original has."""
    program = _read(LOOP)
    copied = copy_program(program)
    clone = Op(copied, "toy.new", (), [_add_of(copied).result.type])
    assert clone.id not in {op.id for op in program.walk()}
    assert clone.result.id not in {value.id for op in program.walk() for value in op.results}


def test_locations_are_those_of_the_original():
    """An op of a copy has the location of its original, a new op has none."""
    program = _read(LOOP)
    copied = copy_program(program)
    assert _add_of(copied).location == _add_of(program).location == "-:5:10"
    assert Op(copied, "toy.new").location == ""


def test_scopes_are_those_of_the_original():
    """An op of a copy has the name stack of its original, a new op has none."""
    named = LOOP.replace('\n    "toy.yield', ' loc("jit(f)/layer_0/add")\n    "toy.yield')
    program = _read(named)
    copied = copy_program(program)
    assert _add_of(copied).scope == _add_of(program).scope == "jit(f)/layer_0/add"
    assert Op(copied, "toy.new").scope == ""
