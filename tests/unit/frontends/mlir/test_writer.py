"""Op graphs back to native modules: what changed is written, nothing else is touched."""

import pytest

from shardy_py.errors import UnsupportedError, VerificationError
from shardy_py.frontends.mlir import (
    import_module,
    parse_module,
    print_module,
    run_native_pass,
    verify_module,
    write_back,
)
from shardy_py.ir.graph.attributes import UNIT, RawAttribute, SymbolRef
from shardy_py.ir.graph.program import Block, Op, Region
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.graph.types import tensor
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.tensor import TensorShardingPerValue

TEXT = """\
module {
  sdy.mesh @m = <["x"=2]>
  func.func @main(%arg0: tensor<4xf32> {t.width = 1 : i8}, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>
    %1 = "t.region"(%0) ({
      %3 = "t.inner"(%0) {n = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>
      "t.yield"(%3) : (tensor<4xf32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = stablehlo.multiply %1, %0 : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
"""


@pytest.fixture
def program():
    """The program of `TEXT`."""
    return import_module(parse_module(TEXT))


def _find(program, name):
    return next(op for op in program.walk() if op.name == name)


def _written(program):
    module = write_back(program)
    verify_module(module)
    text = print_module(module)
    again = import_module(parse_module(text))
    assert [op.name for op in again.walk()] == [op.name for op in program.walk()]
    return text


def test_nothing_changes_without_a_change(program):
    """The text is the same to the letter, and the module the same object."""
    assert write_back(program) is program.origin.module
    assert print_module(program.origin.module).strip() == TEXT.strip()


def test_attributes_are_set_and_removed(program):
    """Names go in order, values in their native form."""
    inner = _find(program, "t.inner")
    del inner.attributes["n"]
    inner.attributes["b"] = (True, False)
    inner.attributes["a"] = parse_tensor_sharding('<@m, [{"x"}]>')
    inner.attributes["d"] = {"k": (1, "s"), "u": UNIT}
    inner.attributes["e"] = (1, 2)
    inner.attributes["f"] = 0.5
    inner.attributes["g"] = RawAttribute("7 : i8")
    inner.attributes["h"] = tensor(2)
    inner.attributes["i"] = SymbolRef("main")
    expected = (
        '{a = #sdy.sharding<@m, [{"x"}]>, b = array<i1: true, false>, d = {k = [1, "s"], u}, e = array<i64: 1, 2>, '
        "f = 5.000000e-01 : f64, g = 7 : i8, h = tensor<2xf32>, i = @main}"
    )
    assert expected in _written(program)


def test_parts_that_did_not_change_keep_their_native_form(program):
    """A sharding beside another attribute of an argument leaves the width of that one alone."""
    function = program.functions["main"]
    first, second = function.attributes["arg_attrs"]
    sharding = parse_tensor_sharding('<@m, [{"x", ?}]>')
    function.attributes["arg_attrs"] = ({**first, "sdy.sharding": sharding}, {**second, "t.new": 1})
    expected = 'tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", ?}]>, t.width = 1 : i8}'
    text = _written(program)
    assert expected in text
    assert "{t.new = 1 : i64}" in text


def test_changes_can_be_written_one_after_the_other(program):
    """Each call writes what changed since the last one."""
    inner = _find(program, "t.inner")
    for value in (True, "s", 5):
        inner.attributes["n"] = value
        write_back(program)
    inner.attributes["m"] = True
    write_back(program)
    del inner.attributes["m"]
    assert "{n = 5 : i32}" in _written(program)


def test_an_attribute_mlir_cannot_read_is_an_error(program):
    """The message has the text."""
    _find(program, "t.inner").attributes["n"] = RawAttribute("#broken<<")
    with pytest.raises(VerificationError, match="does not accept #broken<<"):
        write_back(program)


def test_ops_are_created_where_they_stand(program):
    """At the start, in the middle and in a region; operands may be new, too."""
    add, region = _find(program, "stablehlo.add"), _find(program, "t.region")
    first = Op(program, "t.first", [add.operands[0]], [tensor(4)])
    add.parent.insert_after(None, first)
    middle = Op(program, "t.middle", [first.result, add.result], [tensor(4), tensor(2, 2)], {"k": 1})
    add.parent.insert_after(add, middle)
    inside = Op(program, "t.inside", [middle.results[1]])
    region.regions[0].block.insert_after(None, inside)
    region.set_operand(0, middle.results[0])
    text = _written(program)
    assert '%1 = stablehlo.add %arg0, %arg1 : tensor<4xf32>\n    %2:2 = "t.middle"(%0, %1) {k = 1 : i64}' in text
    assert '"t.region"(%2#0) ({\n      "t.inside"(%2#1)' in text


CONSTANTS = """\
module {
  sdy.mesh @m = <["x"=2]>
  func.func @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %cst = stablehlo.constant dense<1.0> : tensor<4xf32> loc("one")
    %cst_0 = stablehlo.constant dense<2.0> : tensor<4xf32> loc("two")
    %0 = stablehlo.add %cst, %cst_0 : tensor<4xf32>
    %1 = stablehlo.multiply %0, %cst : tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}
"""


def test_an_op_with_another_name_is_another_native_op_at_its_place():
    """All that used it use the new one, which has its location and its changes; one that has gone is erased."""
    program = import_module(parse_module(CONSTANTS))
    first, second = [op for op in program.walk() if op.name == "stablehlo.constant"]
    users = first.result.users
    for op in (first, second):
        op.rename("sdy.constant")
    assert first.result.users == users[::-1]
    first.attributes["sdy.sharding"] = TensorShardingPerValue((parse_tensor_sharding('<@m, [{"x"}]>'),))
    copied = first.parent.insert_after(second, clone_op(first, {}))
    copied.attributes["t.copy"] = UNIT
    for user in second.result.users:
        user.set_operand(1, copied.result)
    second.erase()
    text = _written(program)
    assert text.count("sdy.constant") == 2
    assert "dense<2" not in text
    assert "stablehlo.constant" not in text
    assert text.count("sdy.sharding =") == 2
    assert [op.location for op in (first, copied)] == ["one", "one"]
    assert _written(program) == text


def test_a_renamed_op_keeps_its_regions_and_may_use_new_ops(program):
    """Its native op is made before those that it uses now."""
    region_op = _find(program, "t.region")
    new = Op(program, "t.new", (), [tensor(4)])
    region_op.parent.insert_before(region_op, new)
    region_op.rename("t.other")
    region_op.set_operand(0, new.result)
    text = _written(program)
    assert '"t.other"(%1)' in text
    assert "t.inner" in text
    assert "t.region" not in text


def test_ops_are_erased(program):
    """Together with what is inside, and users before what they use."""
    region, add, multiply = (_find(program, name) for name in ("t.region", "stablehlo.add", "stablehlo.multiply"))
    multiply.set_operand(0, add.result)
    region.erase()
    assert "t.region" not in _written(program)
    multiply.result.replace_all_uses_with(add.operands[0])
    multiply.erase()
    add.erase()
    text = _written(program)
    assert "return %arg0" in text
    assert "stablehlo" not in text


def test_ops_move_within_and_between_blocks(program):
    """What was inside an op can stand outside after the op is gone."""
    region, inner = _find(program, "t.region"), _find(program, "t.inner")
    outer = region.parent
    region.regions[0].block.remove(inner)
    outer.insert_before(region, inner)
    region.result.replace_all_uses_with(inner.result)
    region.erase()
    text = _written(program)
    assert '%1 = "t.inner"(%0) {n = 3 : i32}' in text
    assert "stablehlo.multiply %1, %0" in text
    add = _find(program, "stablehlo.add")
    copy = Op(program, "t.late", [add.operands[0]], [tensor(4)])
    outer.insert_after(add, copy)
    outer.remove(add)
    outer.insert_after(copy, add)
    assert '"t.late"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>\n    %1 = stablehlo.add' in _written(program)


def test_a_region_can_be_taken_over(program):
    """The ops of a block stay the same native ops when the block goes to a new op."""
    region = _find(program, "t.region")
    inner = _find(program, "t.inner")
    native = inner.handle.native
    taken = Op(program, "t.taker", region.operands, [tensor(4)], regions=[region.regions[0]])
    region.regions = ()
    region.parent.insert_before(region, taken)
    region.result.replace_all_uses_with(taken.result)
    region.erase()
    text = _written(program)
    assert '"t.taker"(%0) ({\n      %3 = "t.inner"' in text
    assert inner.handle.native == native


def test_copies_keep_what_the_op_graph_does_not_hold():
    """Constants without a form in Python, and the width of numbers, survive a copy of the attributes."""
    program = import_module(
        parse_module(
            "func.func @main() {\n  %0 = stablehlo.constant dense<(1.0,2.0)> : tensor<2xcomplex<f32>>\n"
            '  %1 = "t.op"(%0) {w = 3 : i8, v = 1 : i8} : (tensor<2xcomplex<f32>>) -> tensor<1xi1>\n  return\n}'
        )
    )
    constant, op, end = program.functions["main"].regions[0].block.ops
    clone = Op(program, constant.name, [], [constant.result.type], constant.attributes.copy())
    constant.parent.insert_before(op, clone)
    user = Op(program, op.name, [clone.result], [op.result.type], op.attributes.copy())
    user.attributes["k"] = 1
    del user.attributes["v"]
    constant.parent.insert_before(end, user)
    text = _written(program)
    assert text.count("stablehlo.constant dense<(1.000000e+00,2.000000e+00)>") == 2
    assert '"t.op"(%cst_0) {k = 1 : i64, w = 3 : i8}' in text


def test_the_result_of_a_copy_can_be_used_whatever_its_class_calls_it():
    """The bindings' class of this op calls the list of its results ``result``."""
    program = import_module(
        parse_module(
            "func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
            "  %0 = stablehlo.optimization_barrier %a : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}"
        )
    )
    barrier, last = _find(program, "stablehlo.optimization_barrier"), _find(program, "func.return")
    copied = clone_op(barrier, {})
    barrier.parent.insert_after(barrier, copied)
    again = clone_op(copied, {barrier.operands[0].id: copied.result})
    barrier.parent.insert_after(copied, again)
    last.set_operand(0, again.result)
    assert list(again.operands) == [copied.result]
    text = _written(program)
    assert text.count("optimization_barrier") == 3
    assert "optimization_barrier %1" in text
    assert "return %2" in text


def test_functions_are_created_with_their_bodies(program):
    """A new function may be a copy with another name, and be called."""
    main = program.functions["main"]
    block = Block(program, [argument.type for argument in main.regions[0].block.arguments])
    block.append(Op(program, "func.return", [block.arguments[1]]))
    function = Op(program, "func.func", attributes=main.attributes.copy(), regions=[Region([block])])
    function.attributes["sym_name"] = "helper"
    function.attributes["sym_visibility"] = "private"
    program.body.append(function)
    add = _find(program, "stablehlo.add")
    call = Op(program, "func.call", add.operands, [tensor(4)], {"callee": SymbolRef("helper")})
    add.parent.insert_after(add, call)
    text = _written(program)
    assert "call @helper(%arg0, %arg1)" in text
    assert "func.func private @helper(%arg0: tensor<4xf32> {t.width = 1 : i8}, %arg1: tensor<4xf32>)" in text
    assert "return %arg1" in text


def test_the_number_of_operands_may_change(program):
    """The native op is replaced, with its regions and attributes."""
    region, add = _find(program, "t.region"), _find(program, "stablehlo.add")
    region.replace_operands([*region.operands, add.result])
    region.attributes["k"] = 1
    text = _written(program)
    assert '%1 = "t.region"(%0, %0) ({\n      %3 = "t.inner"(%0) {n = 3 : i32}' in text
    assert "}) {k = 1 : i64}" in text
    assert "stablehlo.multiply %1, %0" in text


def test_an_operand_that_is_nowhere_is_an_error(program):
    """The op that defines it was never inserted."""
    add = _find(program, "stablehlo.add")
    add.set_operand(0, Op(program, "t.lost", [], [tensor(4)]).result)
    with pytest.raises(UnsupportedError, match="not in the program"):
        write_back(program)


def test_generic_passes_see_all_changes(program):
    """The module is written back before the pass, and read again after it, into the same program."""
    _find(program, "func.return").set_operand(0, _find(program, "stablehlo.add").operands[0])
    run_native_pass(program, "canonicalize")
    assert "stablehlo.multiply" not in [op.name for op in program.walk()]
    assert "return %arg0" in _written(program)


BARRIER = """
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.optimization_barrier %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.mark.parametrize("with_attribute", [False, True])
def test_the_results_of_a_copy_are_those_of_any_op(with_attribute):
    """A copy of an op for whose class the bindings have a property ``result`` of its own is used like others."""
    program = import_module(parse_module(BARRIER))
    barrier = _find(program, "stablehlo.optimization_barrier")
    attributes = {"t.n": 1} if with_attribute else barrier.attributes.copy()
    copy = Op(program, barrier.name, [barrier.result], [barrier.result.type], attributes)
    barrier.parent.insert_after(barrier, copy)
    _find(program, "func.return").set_operand(0, copy.result)
    text = _written(program)
    assert "%1 = stablehlo.optimization_barrier" in text
    assert "return %1" in text
