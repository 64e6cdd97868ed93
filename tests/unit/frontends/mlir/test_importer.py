"""Native modules to op graphs: structure, uses, attributes, types, locations."""

import pytest

from shardy_py.frontends.mlir import import_module, parse_module
from shardy_py.ir.graph.attributes import UNIT, DenseElements, OpaqueElements, RawAttribute, SymbolRef
from shardy_py.ir.graph.types import OpaqueType, TensorType, tensor
from shardy_py.ir.graph.walk import all_ops, own_values
from shardy_py.sharding.parse import parse_attribute, parse_mesh, parse_tensor_sharding


def _program(text, **options):
    return import_module(parse_module(text), **options)


def _attribute(text):
    return _program(f"func.func private @f() attributes {{t.x = {text}}}").functions["f"].attributes["t.x"]


LOOP = """\
func.func @main(%a: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %0:2 = stablehlo.while(%x = %a, %i = %n) : tensor<4xf32>, tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %x, %a : tensor<4xf32>
    stablehlo.return %1, %i : tensor<4xf32>, tensor<i32>
  }
  return %0#0 : tensor<4xf32>
}
"""


def test_ids_follow_the_text():
    """Ops are numbered in pre-order, each before those in its regions, and values as well."""
    program = _program(LOOP)
    ops = list(program.walk())
    assert [op.name for op in sorted(ops, key=lambda op: op.id)] == [
        "func.func",
        "stablehlo.while",
        "stablehlo.compare",
        "stablehlo.return",
        "stablehlo.add",
        "stablehlo.return",
        "func.return",
    ]
    values = [value for op in ops for value in own_values(op)]
    assert len({value.id for value in values}) == len(values)
    assert [value.id for op in ops for value in op.results] == sorted(value.id for op in ops for value in op.results)


def test_an_op_and_its_first_result_have_one_id():
    """Each number is an object, and there is one for both."""
    for op in _program(LOOP).walk():
        assert all(value.id is op.id for value in op.results[:1])
        assert all(value.id > op.id for value in op.results[1:])


def test_uses_are_in_the_order_in_which_the_parser_makes_them():
    """Ops inside an op use a value before the op itself does, in either way of counting."""
    for native_use_order in (False, True):
        program = _program(LOOP, native_use_order=native_use_order)
        function = program.functions["main"]
        first, second = function.regions[0].block.arguments
        assert [(op.name, number) for op, number in first.uses] == [("stablehlo.add", 1), ("stablehlo.while", 0)]
        assert [(op.name, number) for op, number in second.uses] == [("stablehlo.compare", 1), ("stablehlo.while", 1)]


def test_a_value_may_be_used_before_its_op():
    """Blocks need not stand in the order in which they run."""
    program = _program(
        "func.func @f() -> tensor<2xf32> {\n  cf.br ^bb2\n^bb1:\n"
        '  %0 = "t.use"(%1) : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n'
        '^bb2:\n  %1 = "t.def"() : () -> tensor<2xf32>\n  cf.br ^bb1\n}'
    )
    _, use, _, definition, _ = list(program.functions["f"].walk())[1:]
    assert list(use.operands) == [definition.result]
    assert definition.result.uses == [(use, 0)]


def test_functions_have_values_for_their_results():
    """A declaration has them, too."""
    program = _program("func.func private @f(tensor<2xf32>) -> (tensor<2x?xf32>, tuple<tensor<1xf32>>)")
    types = [value.type for value in program.functions["f"].function_results]
    assert types == [tensor(2, None), OpaqueType("tuple<tensor<1xf32>>")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tensor<8x4xbf16>", TensorType((8, 4), "bf16")),
        ("tensor<?x4xcomplex<f32>>", TensorType((None, 4), "complex<f32>")),
        ("tensor<f8E4M3FN>", TensorType((), "f8E4M3FN")),
        ('tensor<2xi32, "csr">', TensorType((2,), "i32", 'tensor<2xi32, "csr">')),
        ("tensor<*xf32>", OpaqueType("tensor<*xf32>")),
        ("vector<4xf32>", OpaqueType("vector<4xf32>")),
        ("!stablehlo.token", OpaqueType("!stablehlo.token")),
        ("tensor<4x!toy.thing>", TensorType((4,), "!toy.thing")),
    ],
)
def test_types_keep_their_text(text, expected):
    """Ranked tensors have sizes, everything else is opaque; both print as MLIR does."""
    (argument,) = _program(f'"t.op"() ({{\n^bb0(%a: {text}):\n}}) : () -> ()').body.first.regions[0].block.arguments
    assert argument.type == expected
    assert str(argument.type) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", True),
        ("3 : i32", 3),
        ("-3 : si8", -3),
        ("2.5 : f32", 2.5),
        ('"s"', "s"),
        ("unit", UNIT),
        ("[1, true, [2]]", (1, True, (2,))),
        ("array<i64: 1, 2>", (1, 2)),
        ("array<i1: true, false>", (True, False)),
        ("{a = 1}", {"a": 1}),
        ("tensor<2xf32>", tensor(2)),
        ("(tensor<2xf32>) -> ()", OpaqueType("(tensor<2xf32>) -> ()")),
        ("@f", SymbolRef("f", "@f")),
        ("@f::@g", SymbolRef("f", "@f::@g")),
        ("dense<[[1], [2]]> : tensor<2x1xi64>", DenseElements((2, 1), (1, 2), "dense<[[1], [2]]> : tensor<2x1xi64>")),
        ("dense<7> : tensor<3xi32>", DenseElements((3,), (7, 7, 7), "dense<7> : tensor<3xi32>")),
        ("dense<-7> : tensor<i8>", DenseElements((), (-7,), "dense<-7> : tensor<i8>")),
        ("dense<true> : tensor<1x1x2xi1>", DenseElements((1, 1, 2), (1, 1), "dense<true> : tensor<1x1x2xi1>")),
        ("dense<> : tensor<2x0xui16>", DenseElements((2, 0), (), "dense<> : tensor<2x0xui16>")),
        ("dense<255> : tensor<1xui8>", DenseElements((1,), (255,), "dense<255> : tensor<1xui8>")),
        ("dense<3> : tensor<1xindex>", DenseElements((1,), (3,), "dense<3> : tensor<1xindex>")),
        ("affine_map<(d0) -> (d0)>", RawAttribute("affine_map<(d0) -> (d0)>")),
        ('"\\FF\\00"', RawAttribute('"\\FF\\00"')),
        ("#stablehlo<comparison_direction EQ>", RawAttribute("#stablehlo<comparison_direction EQ>")),
        ("#toy.what<x>", RawAttribute("#toy.what<x>")),
        ('#sdy.sharding<@m, [{"x", ?}]>', parse_tensor_sharding('<@m, [{"x", ?}]>')),
        ('#sdy.mesh<["x"=2]>', parse_mesh('<["x"=2]>')),
        ('#sdy<manual_axes{"x"}>', parse_attribute('#sdy<manual_axes{"x"}>')),
    ],
)
def test_attributes_become_plain_values(text, expected):
    """Whatever has an obvious form in Python takes it, the rest keeps its text."""
    actual = _attribute(text)
    assert actual == expected
    assert type(actual) is type(expected)


def test_large_constants_are_not_decoded():
    """Elements stay native above 1,024, and always where they are no integers of whole bytes."""
    large = ", ".join(str(i) for i in range(1025))
    for text in (
        f"dense<[{large}]> : tensor<1025xi32>",
        "dense<1.0> : tensor<2xf32>",
        "dense<1> : tensor<2xi4>",
        "dense_resource<r> : tensor<2xi32>",
    ):
        actual = _attribute(text)
        assert isinstance(actual, OpaqueElements)
        assert actual == _attribute(text) or str(actual) == str(_attribute(text))


def test_attributes_without_a_class_in_the_bindings_do_no_harm():
    """Complex constants and locations, also inside arrays and dictionaries, stay raw; their neighbours do not."""
    complex_ = "dense<(1.0,2.0)> : tensor<2xcomplex<f32>>"
    program = _program(
        f'func.func private @f() attributes {{t.a = {complex_}, t.b = loc("x"), t.c = [{complex_}], '
        f"t.d = {{k = {complex_}}}, t.e = 1}}"
    )
    attributes = program.functions["f"].attributes
    assert attributes["t.e"] == 1
    assert all(isinstance(attributes[f"t.{name}"], RawAttribute) for name in "abcd")
    assert "t.a" in list(attributes)


def test_complex_constants_are_told_apart():
    """Two ops with different undecodable attributes are not taken for the same."""
    program = _program(
        "func.func @f() {\n  %0 = stablehlo.constant dense<(1.0,2.0)> : tensor<2xcomplex<f32>>\n"
        "  %1 = stablehlo.constant dense<(1.0,3.0)> : tensor<2xcomplex<f32>>\n  return\n}"
    )
    first, second, _ = program.functions["f"].regions[0].block.ops
    assert first.attributes["value"] != second.attributes["value"]


def test_ops_with_the_same_attributes_share_a_key():
    """The key stands for all attributes; a changed mapping has none."""
    program = _program('"t.a"() {k = 1} : () -> ()\n"t.a"() {k = 1} : () -> ()\n"t.a"() {k = 2} : () -> ()')
    first, second, third = program.body.ops
    assert first.attributes.key is second.attributes.key
    assert first.attributes.key is not third.attributes.key
    first.attributes["n"] = 1
    assert first.attributes.key is None
    assert second.attributes.key is not None


def test_attributes_behave_like_a_dictionary():
    """Reading, writing, deleting and copying agree with each other."""
    op = _program('"t.a"() {k = 1, l = 2} : () -> ()').body.first
    attributes = op.attributes
    assert dict(attributes) == {"k": 1, "l": 2}
    copy = attributes.copy()
    attributes["m"] = 3
    del attributes["k"]
    assert dict(attributes) == {"l": 2, "m": 3}
    assert len(attributes) == 2
    assert "k" not in attributes
    assert attributes.get("k", 0) == 0
    assert dict(copy) == {"k": 1, "l": 2}
    with pytest.raises(KeyError):
        del attributes["k"]
    del attributes["m"]
    assert dict(attributes) == {"l": 2}


def test_locations_name_the_source():
    """An op knows its place; a source without a name gets the given one."""
    program = import_module(parse_module(LOOP), name="in.mlir")
    assert [op.location for op in program.walk()][:3] == ["in.mlir:1:1", "in.mlir:2:10", "in.mlir:4:10"]


def test_a_program_can_be_refilled():
    """The contents are those of the new module, the object is the same."""
    program = _program('"t.a"() : () -> ()')
    assert import_module(parse_module('"t.b"() : () -> ()'), into=program) is program
    assert [op.name for op in program.walk()] == ["t.b"] == [op.name for op in all_ops(program)]


def test_the_index_starts_with_all_ops_in_program_order():
    """An op comes before those in its regions, and these before the next op, as in a walk."""
    program = _program("""
"t.outer"() ({
  "t.first"() : () -> ()
^bb1:
  "t.second"() ({ "t.inner"() : () -> () }, { "t.inner"() : () -> () }) : () -> ()
}) : () -> ()
"t.last"() : () -> ()
""")
    assert list(all_ops(program)) == list(program.walk())


def test_functions_have_the_results_that_they_return():
    """A declaration returns nothing that could tell; of several blocks the one that returns does."""
    program = _program("""
func.func private @declared(tensor<2xf32>) -> (tensor<3xf32>, tensor<4xi32>)
func.func @empty() { return }
func.func @jumping(%a: tensor<5xf32>, %n: tensor<6xi32>) -> (tensor<6xi32>, tensor<5xf32>) {
  cf.br ^bb1(%a : tensor<5xf32>)
^bb1(%b: tensor<5xf32>):
  return %n, %b : tensor<6xi32>, tensor<5xf32>
}
""")
    actual = {name: [str(item.type) for item in op.function_results] for name, op in program.functions.items()}
    assert actual == {
        "declared": ["tensor<3xf32>", "tensor<4xi32>"],
        "empty": [],
        "jumping": ["tensor<6xi32>", "tensor<5xf32>"],
    }


def test_locations_have_no_characters_that_a_terminal_obeys():
    """A file may be called anything, and its name stands in reports."""
    program = _program("func.func @main() {\n  return\n}\n", name="a\x1b[31m.mlir")
    assert program.functions["main"].location == "a\\x1b[31m.mlir:1:1"
