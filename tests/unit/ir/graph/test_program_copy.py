"""Copies of whole programs are like their originals, and independent of them."""

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.frontends.mlir import import_module, parse_module
from shardy_py.ir import verify
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.oracle.generate import generate
from tests.unit.outline import listing

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
    made = Op(copied, "toy.new", (), [_add_of(copied).result.type])
    assert made.id not in {op.id for op in program.walk()}
    assert made.result.id not in {value.id for op in program.walk() for value in op.results}


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
