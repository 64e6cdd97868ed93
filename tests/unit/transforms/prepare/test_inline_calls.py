"""Bodies of functions in the places of their calls."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("jaxlib")

import shardy_py as sdy
from shardy_py.cost.session import Session
from shardy_py.errors import UnsupportedError
from shardy_py.frontends.mlir import import_module, parse_module, write_back
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.oracle.conformance import reference_registry, run
from shardy_py.transforms.pass_names import parse_pipeline
from shardy_py.transforms.run import run_on_attributes

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>\n'
PLAIN = (
    MESH
    + """
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}) -> tensor<8x8xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %x = %arg0) : tensor<i32>, tensor<8x8xf32>
  cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = func.call @block(%x, %arg1) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %2, %1 : tensor<i32>, tensor<8x8xf32>
  }
  %3 = call @square(%0#1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}
func.func @block(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = call @square(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
func.func private @square(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.multiply %arg0, %arg0 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func private @nobody(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  return %arg0 : tensor<8x8xf32>
}
"""
)
BY_HAND = (
    MESH
    + """
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}) -> tensor<8x8xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %x = %arg0) : tensor<i32>, tensor<8x8xf32>
  cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %4 = stablehlo.dot_general %x, %arg1, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.multiply %4, %4 : tensor<8x8xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %2, %1 : tensor<i32>, tensor<8x8xf32>
  }
  %3 = stablehlo.multiply %0#1, %0#1 : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}
"""
)


def test_calls_in_regions_and_in_functions_are_inlined() -> None:
    """The result is that of the same program written without calls; no other function is left."""
    assert sdy.propagate(PLAIN, inline_calls=True).text == sdy.propagate(BY_HAND).text
    assert "func.call" in sdy.propagate(PLAIN).text


def test_a_session_inlines_too() -> None:
    """What is solved and priced is the program without calls."""
    opened, by_hand = Session.open(PLAIN, inline_calls=True), Session.open(BY_HAND)
    assert [op.name for op in opened.program.walk()] == [op.name for op in by_hand.program.walk()]
    assert opened.evaluate().cost.communication_bytes == by_hand.evaluate().cost.communication_bytes


ANNOTATED = (
    MESH
    + """
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}]>}) {
  %0 = stablehlo.tanh %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
)


def test_shardings_of_functions_and_calls_become_constraints() -> None:
    """What a call says of its results counts more than what the function says, as in the pipeline."""
    lines = [line.strip() for line in run(ANNOTATED, "inline-calls").splitlines()]
    assert [line for line in lines if line.startswith("%")] == [
        '%0 = sdy.sharding_constraint %arg0 <@mesh, [{"a"}]> : tensor<8xf32>',
        "%1 = stablehlo.tanh %0 : tensor<8xf32>",
        '%2 = sdy.sharding_constraint %1 <@mesh, [{"b", ?}]> : tensor<8xf32>',
        '%3 = sdy.sharding_constraint %2 <@mesh, [{"a"}]> : tensor<8xf32>',
        "%4 = stablehlo.tanh %3 : tensor<8xf32>",
        "%5 = sdy.sharding_constraint %4 <@mesh, [{}]> : tensor<8xf32>",
    ]


def test_fully_open_shardings_leave_nothing() -> None:
    """An annotation that allows everything is none."""
    text = ANNOTATED.replace('[{"a"}]', "[{?}]").replace('[{"b", ?}]', "[{?}]").replace("[{}]", "[{?}]")
    assert "constraint" not in run(text, "inline-calls")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("call @f(%arg0) :", "call @f(%arg0) {no_inline} :"),
        ("call @f(%arg0) :", 'call @f(%arg0) {mhlo.frontend_attributes = {_xla_compute_type = "host"}} :'),
    ],
)
def test_a_call_that_says_so_stays(old: str, new: str) -> None:
    """A call that must not be inlined, or whose attributes say where it runs, keeps its function; others do not."""
    text = run(ANNOTATED.replace(old, new), "inline-calls")
    assert text.count("call @f") == 1
    assert text.count("stablehlo.tanh") == 2
    assert "func.func private @f" in text


@pytest.mark.parametrize("attribute", ["no_inline", 'execution_thread = "host"'])
def test_a_function_that_says_so_stays(attribute: str) -> None:
    """A function that must not be inlined keeps all its calls, and the calls in it go."""
    text = PLAIN.replace(
        "@block(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {",
        f"@block(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {{{attribute}}} {{",
    )
    result = run(text, "inline-calls")
    assert result.count("call @block") == 1
    assert "@square" not in result


def test_a_declaration_stays() -> None:
    """A function without a body has nothing to put anywhere."""
    text = """
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(tensor<8xf32>) -> tensor<8xf32>
"""
    assert "call @f" in run(text, "inline-calls")


def test_a_function_that_is_more_than_called_stays() -> None:
    """What another op refers to is needed, even if all its calls are gone."""
    text = """
func.func @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @g(%arg0) {called_computations = [@f]} : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
    result = run(text, "inline-calls")
    assert result.count("stablehlo.tanh") == 2
    assert "call @f" not in result


def test_named_computations_are_inlined_with_their_shardings() -> None:
    """A named computation is a call that was inlined halfway; one inside of another goes, too."""
    text = (
        MESH
        + """
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.named_computation<"outer">(%arg0) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"b"}]>]
      (%x: tensor<8xf32>) {
    %1 = sdy.named_computation<"inner">(%x) (%y: tensor<8xf32>) {
      %2 = stablehlo.tanh %y : tensor<8xf32>
      sdy.return %2 : tensor<8xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
    )
    lines = [line.strip() for line in run(text, "inline-calls").splitlines()]
    assert [line for line in lines if line.startswith("%")] == [
        '%0 = sdy.sharding_constraint %arg0 <@mesh, [{"a"}]> : tensor<8xf32>',
        "%1 = stablehlo.tanh %0 : tensor<8xf32>",
        '%2 = sdy.sharding_constraint %1 <@mesh, [{"b"}]> : tensor<8xf32>',
    ]


def test_a_circle_of_calls_is_refused() -> None:
    """Functions that call each other have no place to be put in."""
    text = """
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
    with pytest.raises(UnsupportedError, match="in a circle: @f -> @f"):
        sdy.propagate(text, inline_calls=True)


def test_a_location_tells_the_calls_that_led_there() -> None:
    """An op keeps where it was written, and adds where it was called, and where that was."""
    text = """
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32> loc("outer.py":1:2)
  return %0 : tensor<8xf32>
}
func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @g(%arg0) : (tensor<8xf32>) -> tensor<8xf32> loc("inner.py":3:4)
  return %0 : tensor<8xf32>
}
func.func private @g(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8xf32> loc("tanh"("model.py":5:6))
  return %0 : tensor<8xf32>
}
"""
    program = import_module(parse_module(text))
    run_on_attributes(program, parse_pipeline("inline-calls"), PassContext(reference_registry()))
    (op,) = (op for op in program.walk() if op.name == "stablehlo.tanh")
    assert op.location == "model.py:5:6"
    write_back(program)
    assert op.location == "model.py:5:6"
    native = str(op.handle.native.location)
    assert native == 'loc(callsite("tanh"("model.py":5:6) at callsite("inner.py":3:4 at "outer.py":1:2)))'


def test_explanations_know_the_names_of_the_given_module() -> None:
    """A value of a function that was inlined can be asked for by the name it has there."""
    result = sdy.propagate(PLAIN, inline_calls=True, trace=True)
    assert '"a"' in str(result.explain("@block:%0", names="input"))


def test_chains_of_calls_may_be_long() -> None:
    """The depth of a chain of calls is not bounded by Python's stack."""
    functions = [
        f"func.func private @f{number}(%a: tensor<8xf32>) -> tensor<8xf32> {{\n"
        f"  %0 = call @f{number + 1}(%a) : (tensor<8xf32>) -> tensor<8xf32>\n  return %0 : tensor<8xf32>\n}}"
        for number in range(1500)
    ]
    text = "\n".join(
        [
            "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n"
            "  %0 = call @f0(%a) : (tensor<8xf32>) -> tensor<8xf32>\n  return %0 : tensor<8xf32>\n}",
            *functions,
            "func.func private @f1500(%a: tensor<8xf32>) -> tensor<8xf32> {\n"
            "  %0 = stablehlo.tanh %a : tensor<8xf32>\n  return %0 : tensor<8xf32>\n}",
        ]
    )
    assert run(text, "inline-calls").count("stablehlo.tanh") == 1


def test_modules_of_xdsl_are_inlined_too(tmp_path: Path) -> None:
    """What is inlined is the op graph, whatever frontend it came through."""
    pytest.importorskip("xdsl")
    path = tmp_path / "calls.xdsl"
    path.write_text("""
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}
func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.tanh"(%a) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}
""")
    text = sdy.propagate(path, {"a": 2}, in_shardings=[("a",)], inline_calls=True).text
    assert "func.call" not in text
    assert text.count("stablehlo.tanh") == 1
