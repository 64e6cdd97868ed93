"""Sources of MLIR: text, bytecode, paths, modules, JAX stages, and what is wrong with them."""

import io

import pytest
from jaxlib.mlir import ir

from shardy_py.errors import ParseError, UnsupportedError, VerificationError
from shardy_py.frontends.mlir import import_module, parse_module, print_module, to_module, verify_module
from shardy_py.frontends.mlir.context import location_text, scope_text

TEXT = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}\n"


def _bytecode(module):
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def test_text_bytes_bytecode_and_paths_give_the_same_module(tmp_path):
    """Every form of a module prints the same."""
    module = parse_module(TEXT)
    (tmp_path / "text.mlir").write_text(TEXT)
    (tmp_path / "code.mlirbc").write_bytes(_bytecode(module))
    sources = [TEXT.encode(), _bytecode(module), tmp_path / "text.mlir", tmp_path / "code.mlirbc"]
    assert {print_module(to_module(source)) for source in sources} == {print_module(module)}


def test_a_module_is_taken_as_it_is():
    """An in-memory module is the module that is changed later, no copy."""
    module = parse_module(TEXT)
    assert to_module(module) is module


def test_unregistered_dialects_are_accepted_in_generic_form():
    """Ops of dialects nobody registered are read and printed."""
    text = '"toy.op"() {k = 3 : i32} : () -> ()'
    assert text in print_module(parse_module(text))


def test_the_generic_form_quotes_every_op():
    """On demand every op is printed in MLIR's generic form."""
    assert '"func.return"(%arg0)' in print_module(parse_module(TEXT), generic=True)


@pytest.mark.parametrize(
    ("text", "location", "message"),
    [
        ("func.func @main( {", "in.mlir:1:17", "expected non-function type"),
        ("module {\n  %0 = foo\n}", "in.mlir:2:8", "custom op 'foo' is unknown"),
        ("func.func @f() {\n  return\n", "in.mlir:2:9", "expected"),
    ],
)
def test_malformed_text_is_an_error_with_its_place(text, location, message):
    """What MLIR's parser says is passed on, with file, line and column."""
    with pytest.raises(ParseError) as caught:
        parse_module(text, name="in.mlir")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.location) == ("malformed-module", location)
    assert message in diagnostic.message


def test_a_call_out_of_the_region_of_an_unknown_op_has_a_hint():
    """MLIR takes such an op for a table of symbols of its own; the hint is given if the function exists."""
    region = '"toy.loop"() ({\n    func.call @%s() : () -> ()\n  }) : () -> ()'
    text = f"func.func private @f()\nfunc.func @main() {{\n  {region}\n  return\n}}"
    with pytest.raises(ParseError) as caught:
        parse_module(text % "f")
    assert caught.value.diagnostics[0].hint.startswith("the region of an op that MLIR does not know can call")
    with pytest.raises(ParseError) as caught:
        parse_module(text % "g")
    assert "region" not in caught.value.diagnostics[0].hint


def test_an_unknown_axis_is_an_error_that_names_the_op():
    """A sharding that does not fit its mesh is found while parsing."""
    text = (
        'sdy.mesh @m = <["x"=2]>\n'
        'func.func @f(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>}) -> tensor<4xf32> {\n'
        "  return %a : tensor<4xf32>\n}"
    )
    with pytest.raises(ParseError) as caught:
        parse_module(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.op == "func.func"
    assert diagnostic.message == 'arg 0 - unknown axis name: "y"'


@pytest.mark.parametrize("source", [b"\xff\xfe\x00", "\udc80", b"ML\xefR\x00garbage"])
def test_bytes_that_are_no_module_are_an_error(source):
    """Neither broken text nor broken bytecode gets further than the frontend."""
    with pytest.raises(ParseError):
        parse_module(source)


def test_a_missing_file_is_an_error_that_names_it(tmp_path):
    """The path and the reason are in the message."""
    with pytest.raises(ParseError, match=r"no\.mlir: error: cannot read the file: No such file"):
        parse_module(tmp_path / "no.mlir")


def test_an_object_without_a_module_is_an_error():
    """The message says what kinds of input there are."""
    with pytest.raises(UnsupportedError, match="an object of type int is not a module"):
        to_module(3)


@pytest.mark.parametrize(
    "text",
    [
        "func.func private @f(" + "tuple<" * 2000 + "f32" + ">" * 2000 + ")",
        '"t.op"() ({' * 1500 + '"t.end"() : () -> ()' + "}) : () -> ()" * 1500,
    ],
)
def test_brackets_that_would_overflow_the_parser_are_refused(text):
    """The process survives text that nests too deeply."""
    with pytest.raises(ParseError, match="nested more than"):
        parse_module(text)


def test_brackets_in_strings_and_comments_do_not_nest():
    """Only real nesting counts."""
    text = "// " + "(" * 3000 + f'\nmodule attributes {{t.a = "{"<" * 3000}"}} {{}}'
    assert "<<<" in print_module(parse_module(text))


def test_regions_that_would_overflow_the_walks_are_refused():
    """The op graph has a limit of its own, far below Python's."""
    deep = '"t.op"() ({' * 220 + '"t.end"() : () -> ()' + "}) : () -> ()" * 220
    with pytest.raises(UnsupportedError, match="nested more than 200 deep"):
        import_module(parse_module(deep))


def test_an_invalid_module_in_memory_is_an_error():
    """A module somebody built wrongly is verified before it is used."""
    module = parse_module(TEXT)
    with module.context, ir.Location.unknown():
        module.body.operations[0].operation.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], []))
    with pytest.raises(VerificationError, match="entry block"):
        verify_module(module)
    with pytest.raises(VerificationError):
        to_module(module)


@pytest.mark.parametrize(
    ("native", "expected"),
    [
        ('loc("a.py":3:7)', "a.py:3:7"),
        ('loc("jit(f)/add"("a.py":3:7))', "a.py:3:7"),
        ('loc("-":1:2)', "x:1:2"),
        ('loc("C:\\5Cf.py":1:2 to 3:4)', "C:\\5Cf.py:1:2"),
        ("loc(unknown)", ""),
    ],
)
def test_locations_are_given_as_file_line_and_column(native, expected):
    """The innermost file of a location is what a reader can open."""
    assert location_text(native, "x") == expected


@pytest.mark.parametrize(
    ("native", "expected"),
    [
        ('loc("a.py":3:7)', ""),
        ('loc("jit(f)/jvp(layer_0)/add"("a.py":3:7))', "jit(f)/jvp(layer_0)/add"),
        ('loc("jit(f)/mul"(callsite("f"("a.py":1:2) at "main"("a.py":9:1))))', "jit(f)/mul"),
        ('loc(callsite("f"("a.py":1:2) at "main"("a.py":9:1)))', ""),
        ('loc(fused["jit(f)/mul"("a.py":1:2), "b.py":3:4])', "jit(f)/mul"),
        ("loc(unknown)", ""),
    ],
)
def test_scopes_are_the_names_of_locations(native, expected):
    """The name stack is what a location is called, never a frame of its call stack."""
    assert scope_text(native) == expected


def test_what_jax_lowers_is_copied():
    """JAX's own module stays as it was, whatever happens to ours."""
    jax = pytest.importorskip("jax")
    stage = jax.jit(lambda x: x + 1).trace(jax.ShapeDtypeStruct((4,), "float32"))
    lowered = stage.lower()
    module = to_module(lowered)
    assert module is not lowered.compiler_ir("stablehlo")
    assert print_module(module) == print_module(lowered.compiler_ir("stablehlo"))
    assert "stablehlo.add" in print_module(to_module(stage))
