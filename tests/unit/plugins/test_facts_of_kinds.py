"""Facts asked once per kind of op, against facts asked of each op."""

import pytest

import shardy_py as sdy
from shardy_py.frontends.mlir import MLIR, parse_module
from shardy_py.ir.graph.kinds import kind_of
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import tensor
from shardy_py.local.dynamic import put_numbers
from shardy_py.oracle.conformance import reference_registry
from shardy_py.plugins import Registry
from shardy_py.transforms.plugin_passes import ProgramCheck

TEXT = """\
func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %i: tensor<i32>) -> tensor<4x8xf32> {
  %0 = stablehlo.add %a, %a : tensor<4x8xf32>
  %1 = stablehlo.add %0, %a : tensor<4x8xf32>
  %2 = stablehlo.dot_general %1, %b, contracting_dims = [1] x [0]
    : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %3 = stablehlo.dot_general %2, %1, contracting_dims = [1] x [0]
    : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = stablehlo.dot_general %2, %3, contracting_dims = [0] x [0]
    : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = stablehlo.custom_call @Sharding(%4) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = stablehlo.custom_call @other(%5) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = stablehlo.dynamic_slice %6, %i, %i, sizes = [4, 8]
    : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  %8 = stablehlo.add %7, %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=4, j=8}, custom>}
    : tensor<4x8xf32>
  %9 = "t.by_use"(%8) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %10 = "t.by_use"(%9) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %10 : tensor<4x8xf32>
}
"""


@pytest.fixture
def program():
    """A program with kinds."""
    return MLIR.import_verified(parse_module(TEXT))


def _toy():
    toy = sdy.Dialect("t")

    @toy.op("t.by_use", contextual=True)
    def by_use(op: Op):
        return sdy.rule("i j -> i j") if op.results[0].users[0].name == "t.by_use" else None

    return toy


def _registries():
    reference = reference_registry()
    return [reference, Registry.of([_toy()]).with_dialects(reference, ["stablehlo", "func"])]


def _facts(registry, program):
    facts_of = registry.facts_of(program)
    return [(facts.traits, facts.rule) for facts in map(facts_of, program.walk())]


def test_facts_are_those_of_each_op(program):
    """Asked of kinds, by one registry after another, in this run and in the next, they are what each op says."""
    for registry in _registries() * 2:
        program = MLIR.import_verified(parse_module(TEXT))
        assert program.kinds_hold
        of_kinds = _facts(registry, program)
        without = MLIR.import_verified(parse_module(TEXT))
        without.kinds_hold = False
        assert of_kinds == _facts(registry, without)
        assert _facts(registry, program) == of_kinds
    assert [rule is None for _, rule in of_kinds][-4:-1] == [False, False, True]


def test_ops_of_a_kind(program):
    """Equal names, attributes and types make a kind."""
    first, second, dot, *_ = [op for op in program.walk() if op.name.startswith("stablehlo")]
    assert kind_of(first) is kind_of(second) is not None
    assert kind_of(dot) not in (None, kind_of(first))
    assert kind_of(dot).types == [value.type for value in (*dot.operands, *dot.results)]


@pytest.mark.parametrize("change", ["attribute", "name", "operand", "uses"])
def test_a_changed_op_has_no_kind(program, change):
    """Nor has any op, once the type of an operand changed."""
    add, other, dot, *_ = [op for op in program.walk() if op.name.startswith("stablehlo")]
    assert kind_of(add) is kind_of(other)
    narrow = Op(program, "t.narrow", (), [tensor(4, 4)])
    add.parent.insert_before(add, narrow)
    if change == "attribute":
        add.attributes["t.mark"] = 1
    elif change == "name":
        add.name = "stablehlo.subtract"
    elif change == "operand":
        add.set_operand(0, narrow.result)
    else:
        add.results[0].replace_all_uses_with(narrow.result)
    kind = kind_of(add)
    # Of its new name there are kinds, too.
    assert (kind.name if kind else None) == ("stablehlo.subtract" if change == "name" else None)
    assert (kind_of(other) is None) is (change in ("operand", "uses"))
    assert (kind_of(dot) is None) is (change in ("operand", "uses"))


def test_ops_of_other_frontends_have_no_kind(program):
    """An op that a pass made has the attributes that it gave."""
    op = Op(program, "stablehlo.add", program.functions["f"].regions[0].blocks[0].arguments[:1] * 2, [tensor(4, 8)])
    assert kind_of(op) is None


def test_passes_of_plugins_may_give_types(program):
    """What a pass of a plugin gives values as types counts from there on."""
    add = next(op for op in program.walk() if op.name == "stablehlo.add")
    assert kind_of(add) is not None
    ProgramCheck.of(program)
    add.results[0].type = tensor(4, 4)
    assert kind_of(add) is None


def test_numbers_for_dynamic_sizes_are_other_types():
    """So do numbers that stand for dynamic sizes in local programs."""
    text = "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {\n  return %a : tensor<?xf32>\n}"
    program = MLIR.import_verified(parse_module(text))
    (end,) = program.functions["main"].regions[0].block.ops
    assert kind_of(end) is not None
    put_numbers(program)
    assert kind_of(end) is None


def test_functions_called_after_passes_may_give_types():
    """So does what a caller's function gives, which sees the program between passes."""
    held = []
    text = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n  return %a : tensor<8xf32>\n}"
    sdy.propagate(text, on_pass=lambda name, program: held.append(program.kinds_hold))
    assert held
    assert not any(held)
