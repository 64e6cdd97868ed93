"""xDSL modules to op graphs and back, with the attributes that other frontends read."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl")

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.test import Test
from xdsl.irdl import IRDLOperation, irdl_op_definition, region_def, traits_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.traits import ConstantLike, Pure

import shardy_py as sdy
from shardy_dialects.func import func
from shardy_dialects.sdy import sdy as sdy_dialect
from shardy_py.api.source import read_program
from shardy_py.errors import OptionError, ParseError, UnsupportedError, VerificationError
from shardy_py.frontends.xdsl import import_module, parse_module, print_module, to_module, write_back
from shardy_py.frontends.xdsl.semantics import extend
from shardy_py.ir.graph.attributes import SymbolRef
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import tensor
from shardy_py.plugins import OpOperand, Registry
from shardy_py.sharding.tensor import TensorSharding

TEXT = """builtin.module {
  func.func @main(%a: tensor<8x4xf32>, %w: tensor<4x16xf32>) -> tensor<8x16xf32> {
    %c = "toy.ones"() {value = dense<1> : tensor<2xi64>, kind = #toy.kind<a>, width = 3 : i32} : () -> tensor<8x4xf32>
    %r = "toy.add"(%a, %c) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %s = "toy.add"(%r, %c) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %d = "toy.dot"(%s, %w) : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %u = func.call @f(%d) : (tensor<8x16xf32>) -> tensor<8x16xf32>
    func.return %u : tensor<8x16xf32>
  }
  func.func private @f(%b: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %x = "toy.add"(%b, %b) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    func.return %x : tensor<8x16xf32>
  }
}
"""


def toy_registry() -> Registry:
    """Return the rules of the ops in the text."""
    toy = sdy.Dialect("toy")
    toy.op("toy.add", traits=[sdy.Elementwise], rule="i j, i j -> i j")
    toy.op("toy.ones", traits=[sdy.ConstantLike])
    toy.op("toy.dot", rule="i k, k j -> i j", reduction="k")
    return Registry.of([toy, func, sdy_dialect])


def test_a_module_becomes_a_program() -> None:
    """Names, types, attributes, functions and uses are those of the module."""
    program = import_module(parse_module(TEXT))
    assert list(program.functions) == ["main", "f"]
    ones, add, *_, call, _ = program.functions["main"].regions[0].block.ops
    assert (ones.name, add.name, str(ones.result.type)) == ("toy.ones", "toy.add", "tensor<8x4xf32>")
    assert (ones.attributes["width"], str(ones.attributes["kind"])) == (3, "#toy.kind<a>")
    assert ones.attributes["value"].values == (1, 1)
    assert call.attributes["callee"] == SymbolRef("f", "@f")
    assert [user.name for user in ones.result.users] == ["toy.add", "toy.add"]
    assert [value.type for value in program.functions["f"].function_results] == [tensor(8, 16)]


def test_nothing_changed_is_nothing_written() -> None:
    """Import and write-back leave the text as it was."""
    module = parse_module(TEXT)
    before = print_module(module)
    assert print_module(write_back(import_module(module))) == before


def test_propagation_annotates_the_given_module() -> None:
    """Every tensor gets its sharding on the same module, and its text is read again as Shardy writes it."""
    module = parse_module(TEXT)
    result = sdy.propagate(module, {"x": 2, "y": 4}, in_shardings={0: ("x", "y")}, registry=toy_registry())
    assert result.module is module
    assert '%w: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}' in result.text
    assert str(result.results[0]) == '<@mesh, [{"x"}, {}]>'
    assert result.sharding("%d") == result.sharding("d") == result.results[0]
    assert result.sharding(0) == TensorSharding("mesh", result.arguments[0].dim_shardings)
    again = sdy.propagate(parse_module(result.text), registry=toy_registry())
    assert again.text == result.text
    assert again.arguments == result.arguments


def test_the_text_is_mlir() -> None:
    """The MLIR frontend reads what is written, with the same shardings."""
    pytest.importorskip("jaxlib")
    result = sdy.propagate(parse_module(TEXT), {"x": 2, "y": 4}, in_shardings={0: ("x", "y")}, registry=toy_registry())
    mlir = sdy.propagate(result.text, registry=toy_registry())
    assert mlir.arguments == result.arguments
    assert mlir.results == result.results
    assert [str(mlir.sharding(i)) for i in range(2)] == [str(result.sharding(i)) for i in range(2)]


def test_structure_is_written_back() -> None:
    """New, moved, copied and erased ops appear in the module, attributes in their exact native form."""
    module = parse_module(TEXT)
    program = import_module(module)
    block = program.functions["main"].regions[0].block
    ones, first, second, *_ = block.ops
    copied = block.insert_after(ones, Op(program, "toy.ones", (), [tensor(8, 4)], ones.attributes.copy()))
    barrier = Op(program, "sdy.reshard", [copied.result], [tensor(8, 4)], {})
    barrier.attributes["sharding"] = TensorSharding.fully_open("mesh", 2)
    block.insert_before(second, barrier)
    second.set_operand(1, barrier.result)
    first.results[0].replace_all_uses_with(program.functions["main"].regions[0].block.arguments[0])
    first.erase()
    copied.attributes["width"] = 4
    text = print_module(write_back(program))
    module.verify()
    lines = [line.strip() for line in text.splitlines()]
    assert lines[3].startswith(
        '%c_1 = "toy.ones"() {value = dense<1> : tensor<2xi64>, kind = #toy.kind<a>, width = 4 : i32}'
    )
    assert lines[4].startswith('%0 = "sdy.reshard"(%c_1) {sharding = #sdy.sharding<@mesh, [{?}, {?}]>}')
    assert lines[5].startswith('%s = "toy.add"(%a, %0)')
    assert print_module(parse_module(text)) == text


def test_arrays_of_numbers_keep_their_width() -> None:
    """A dense array that takes the place of another one has elements of its type."""
    text = TEXT.replace("width = 3 : i32", "sizes = array<i32: 1, 2>")
    program = import_module(parse_module(text))
    next(iter(program.functions["main"].regions[0].block.ops)).attributes["sizes"] = (3,)
    assert "sizes = array<i32: 3>" in print_module(write_back(program))


def test_properties_of_unregistered_ops_stay_properties() -> None:
    """Ops of Shardy that MLIR printed in the generic form have their shardings once, and as they are in the end."""
    text = """
    "sdy.mesh"() <{sym_name = "mesh", mesh = #sdy.mesh<["x"=2, "y"=4]>}> : () -> ()
    func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
      %r = "sdy.reshard"(%a) <{sharding = #sdy.sharding<@mesh, [{"y"}, {?}], replicated={"x"}>}>
          : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %m = "sdy.manual_computation"(%r) <{
          in_shardings = #sdy.sharding_per_value<[<@mesh, [{"y", ?}, {?}]>]>,
          out_shardings = #sdy.sharding_per_value<[<@mesh, [{"y", ?}, {?}]>]>, manual_axes = #sdy<manual_axes{"y"}>}> ({
      ^bb0(%b: tensor<2x4xf32>):
        "sdy.return"(%b) : (tensor<2x4xf32>) -> ()
      }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
      func.return %m : tensor<8x4xf32>
    }
    """
    actual = sdy.propagate(parse_module(text)).text
    assert '<{sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}>' in actual
    assert 'in_shardings = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>' in actual
    assert 'out_shardings = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>' in actual
    assert "?" not in actual
    assert "replicated=" not in actual


def test_arguments_go_by_their_names_in_the_text() -> None:
    """Names find arguments and show in reports; a name that is the number of another argument is refused."""
    text = """
    func.func @main(%arg1: tensor<8x4xf32>, %arg0: tensor<8x4xf32>, %w: tensor<8x4xf32>) -> tensor<8x4xf32> {
      func.return %w : tensor<8x4xf32>
    }
    """
    result = sdy.propagate(parse_module(text), {"x": 2}, in_shardings={"w": ("x",), 0: (None, "x")})
    assert [str(sharding) for sharding in result.arguments] == ['<@mesh, [{}, {"x"}]>', "None", '<@mesh, [{"x"}, {}]>']
    assert result.sharding("arg1") == result.arguments[0]
    with pytest.raises(OptionError, match=r"'arg1' is the name of argument 0, but the number of argument 1"):
        sdy.propagate(parse_module(text), {"x": 2}, in_shardings={"arg1": ("x",)})


CALLS = """
func.func @main(%%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %%r = "toy.twice"(%%a) ({
  ^bb0(%%b: tensor<8x4xf32>):
    %%c = func.call @f(%%b) : (tensor<8x4xf32>) -> %s
    "toy.end"(%%c) : (%s) -> ()
  }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  func.return %%r : tensor<8x4xf32>
}
func.func private @f(%%b: tensor<8x4xf32>) -> tensor<8x4xf32> {
  func.return %%b : tensor<8x4xf32>
}
"""


def test_calls_in_ops_that_xdsl_does_not_know() -> None:
    """They call functions of the module, and are checked as others are."""
    right, wrong = "tensor<8x4xf32>", "tensor<4xf32>"
    result = sdy.propagate(parse_module(CALLS % (right, right)), {"x": 2}, in_shardings={0: ("x", None)})
    assert "func.call @f" in result.text
    with pytest.raises(VerificationError, match="result type mismatch"):
        parse_module(CALLS % (wrong, wrong))
    with pytest.raises(VerificationError, match="could not be found in symbol table"):
        parse_module((CALLS % (right, right)).replace("@f(%b)", "@g(%b)"))


@irdl_op_definition
class RepeatOp(IRDLOperation):
    """A loop that describes its own edges."""

    name = "own.repeat"
    inputs = var_operand_def()
    outputs = var_result_def()
    body = region_def()

    def get_edge_sources(self, op, owner):
        return [OpOperand(op, owner.index), OpOperand(op.regions[0].block.terminator, owner.index)]

    def get_edge_owner_from_target(self, op, target):
        return op.results[target.index]

    def get_edge_owner_from_source(self, op, source):
        return op.results[source.number]

    def get_non_edge_owner_targets(self, op, owner):
        return [op.regions[0].block.arguments[owner.index]]


@irdl_op_definition
class FlipOp(IRDLOperation):
    """A transpose that gives its own rule."""

    name = "own.flip"
    inputs = var_operand_def()
    outputs = var_result_def()
    traits = traits_def(Pure())

    def get_sharding_rule(self, op):
        assert self.name == op.name
        return sdy.rule("i j -> j i")


class IsOnes(ConstantLike):
    @classmethod
    def get_constant_value(cls, op):
        return None


@irdl_op_definition
class OnesOp(IRDLOperation):
    """A constant by xDSL's traits."""

    name = "own.ones"
    outputs = var_result_def()
    traits = traits_def(Pure(), IsOnes())


OWN = """builtin.module {
  func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %r = "own.repeat"(%a) ({
    ^bb0(%b: tensor<8x8xf32>):
      %f = "own.flip"(%b) : (tensor<8x8xf32>) -> tensor<8x8xf32>
      %g = "own.flip"(%f) : (tensor<8x8xf32>) -> tensor<8x8xf32>
      "test.termop"(%g) : (tensor<8x8xf32>) -> ()
    }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %o = "own.ones"() : () -> tensor<8x8xf32>
    func.return %r : tensor<8x8xf32>
  }
}
"""


def own_module() -> ModuleOp:
    """Return the module of the ops that describe themselves."""
    context = Context()
    for dialect in (Builtin, Func, Test):
        context.load_dialect(dialect)
    for class_ in (RepeatOp, FlipOp, OnesOp):
        context.load_op(class_)
    return Parser(context, OWN).parse_module()


def test_ops_implement_the_protocols_themselves() -> None:
    """Rules and data-flow edges come from the methods of the op classes, without any plugin."""
    result = sdy.propagate(own_module(), {"x": 2}, in_shardings={0: ("x", None)}, registry=Registry())
    assert str(result.results[0]) == '<@mesh, [{"x"}, {}]>'
    assert str(result.sharding("f")) == '<@mesh, [{}, {"x"}]>'
    assert str(result.sharding("b")) == '<@mesh, [{"x"}, {}]>'


def test_traits_of_classes_are_known_and_a_plugin_has_the_last_word() -> None:
    """A class fills only what the definition of a plugin leaves open."""
    program = import_module(own_module())
    dialect = sdy.Dialect("own")
    dialect.op("own.flip", rule="i j -> i j")
    registry = extend(program, Registry.of([dialect]))
    ops = {op.name: op for op in program.walk()}
    assert registry.has_trait(ops["own.ones"], sdy.ConstantLike)
    assert registry.get_data_flow(ops["own.repeat"]) is not None
    assert str(registry.get_sharding_rule(ops["own.flip"])) == "<([i, j])->([i, j]) {i=8, j=8}>"
    assert registry.owners["own.repeat"] == "the xDSL class RepeatOp"


def test_files_and_errors(tmp_path) -> None:
    """An .xdsl file is read by xDSL; errors are ours and name the place."""
    path = tmp_path / "program.xdsl"
    path.write_text(TEXT, encoding="utf-8")
    result = sdy.propagate(path, {"x": 2, "y": 4}, in_shardings={0: ("x", "y")}, registry=toy_registry())
    assert isinstance(result.module, ModuleOp)
    path.write_text("builtin.module {\n  %a = oops\n}", encoding="utf-8")
    with pytest.raises(ParseError, match=r"program\.xdsl:\d+:\d+: "):
        sdy.propagate(path, registry=Registry())
    with pytest.raises(ParseError, match="cannot read"):
        parse_module(tmp_path / "missing.xdsl")
    with pytest.raises(UnsupportedError, match="not a module"):
        to_module(3)


ATTRIBUTES = {
    "flag": ("true", True),
    "number": ("3 : i32", 3),
    "factor": ("1.5 : f32", 1.5),
    "word": ('"SAME"', "SAME"),
    "dims": ("array<i64: 1, 2>", (1, 2)),
    "flags": ("array<i1: true, false>", (True, False)),
    "sizes": ("array<f32: 1.0, 2.0>", (1.0, 2.0)),
    "mixed": ('[1 : i64, "a"]', (1, "a")),
    "named": ("{a = 1 : i64}", {"a": 1}),
}
BODY = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
  %0 = "toy.f"(%x) {{{attributes}}} : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}}""".format(attributes=", ".join(f"{name} = {text}" for name, (text, _) in ATTRIBUTES.items()))


def test_both_frontends_decode_alike():
    """Each kind of attribute has one form in Python, with the same types of its parts."""
    from shardy_py.frontends.xdsl import parse_module

    for source in (BODY, parse_module(f"builtin.module {{ {BODY} }}")):
        op = next(op for op in read_program(source).walk() if op.name == "toy.f")
        actual = {name: op.attributes[name] for name in ATTRIBUTES}
        assert actual == {name: value for name, (_, value) in ATTRIBUTES.items()}
        assert [type(item) for item in actual["flags"]] == [bool, bool]
        assert {name: type(value) for name, value in actual.items()} == {
            name: type(value) for name, (_, value) in ATTRIBUTES.items()
        }
