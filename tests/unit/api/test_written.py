"""What is written parses again: a module that MLIR would refuse is an error with a place, not a result."""

from __future__ import annotations

from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.cost.session import Session
from shardy_py.errors import ParseError, UnsupportedError, VerificationError
from shardy_py.frontends.mlir import parse_module

pytest.importorskip("jaxlib", reason="the programs are written in MLIR")

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2, "one"=1]>\n'
T, L = "tensor<8x8xf32>", "tensor<4x8xf32>"


def manual(body: str, *, functions: str = "", arguments: str = f"%x: {T}") -> str:
    """Return a module with a computation that is manual along "a"."""
    return f"""{MESH}func.func @main({arguments}) -> {T} {{
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{{"a"}}, {{?}}]>] out_shardings=[<@mesh, [{{"a"}}, {{?}}]>]
      manual_axes={{"a", "one"}} (%y: {L}) {{
    {body}
    sdy.return %r : {L}
  }} : ({T}) -> {T}
  return %0 : {T}
}}
{functions}"""


def function(name: str, line: str) -> str:
    """Return a private function."""
    return f"func.func private @{name}(%y: {L}) -> {L} {{\n  {line}\n  return %r : {L}\n}}\n"


CALL = f"%r = func.call @f(%y) : ({L}) -> {L}"
CONSTRAINT = f'%r = sdy.sharding_constraint %y <@mesh, [{{"a"}}, {{}}]> : {L}'
ANNOTATION = f'%r = stablehlo.negate %y {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{}}, {{"a"}}]>]>}} : {L}'


@pytest.mark.parametrize("options", [{}, {"dedup_functions_fully": True}, {"explicit_collectives": True}])
@pytest.mark.parametrize("line", [CONSTRAINT, ANNOTATION])
def test_manual_axes_are_manual_in_called_functions(line: str, options: dict[str, Any]) -> None:
    """A sharding along a manual axis is refused in a function that the manual computation calls, at its place."""
    text = manual(CALL, functions=function("f", line))
    row = next(number for number, item in enumerate(text.splitlines(), 1) if line in item)
    with pytest.raises(VerificationError) as caught:
        sdy.propagate(text, **options)
    problems = caught.value.diagnostics[0]
    assert problems.code == "bound-axis"
    assert problems.location.startswith(f"-:{row}:")
    assert '"a", which is manual there' in problems.message


def test_manual_axes_go_through_several_calls() -> None:
    """So they are where the function that is called calls another one, in a branch."""
    inner = f"""%c = stablehlo.constant dense<true> : tensor<i1>
  %r = "stablehlo.if"(%c) ({{
    %q = func.call @g(%y) : ({L}) -> {L}
    stablehlo.return %q : {L}
  }}, {{
    stablehlo.return %y : {L}
  }}) : (tensor<i1>) -> {L}"""
    text = manual(CALL, functions=function("f", inner) + function("g", CONSTRAINT))
    with pytest.raises(VerificationError, match="which is manual there"):
        sdy.propagate(text)


def test_arguments_of_called_functions_count() -> None:
    """So are shardings of the arguments of such a function."""
    annotated = function("f", f"%r = stablehlo.negate %y : {L}").replace(
        f"%y: {L}", f'%y: {L} {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{}}]>}}'
    )
    with pytest.raises(VerificationError, match=r"argument 0: .* is manual there"):
        sdy.propagate(manual(CALL, functions=annotated))


@pytest.mark.parametrize(
    "functions",
    [
        function("f", CONSTRAINT.replace('{"a"}', '{"b"}')),
        function("f", CONSTRAINT.replace('{"a"}', '{"one"}')),
        function("f", f"%r = stablehlo.negate %y : {L}") + function("unused", CONSTRAINT),
    ],
)
def test_other_axes_are_free(functions: str) -> None:
    """Free axes, axes of one device, and functions that nobody calls are no matter."""
    text = sdy.propagate(manual(CALL, functions=functions)).text
    assert text.count("call @f(") == 1
    assert "@unused" not in text


def test_a_function_may_be_called_from_outside_too() -> None:
    """An axis that is manual for one caller of a function is free for a caller that is not manual."""
    text = f"""{MESH}func.func @main(%x: {L}) -> {L} {{
  {CALL.replace("%y", "%x")}
  return %r : {L}
}}
{function("f", CONSTRAINT)}"""
    assert '{"a"}' in sdy.propagate(text).text


@pytest.mark.parametrize("options", [{}, {"explicit_collectives": True}])
def test_collectives_are_verified(options: dict[str, Any]) -> None:
    """Where propagation brings the axes of an all-reduce onto its result, that is an error at the all-reduce."""
    text = f"""{MESH}func.func @main(%x: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"a", ?}}, {{?}}]>}}) -> {T} {{
  %0 = sdy.all_reduce {{"b"}} %x out_sharding=<@mesh, [{{"a", ?}}, {{?}}]> : {T}
  %1 = stablehlo.add %0, %0 {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"a", "b"}}, {{}}]>]>}} : {T}
  return %1 : {T}
}}"""
    with pytest.raises(VerificationError, match=r"-:3:\d+: error: 'sdy.all_reduce'"):
        sdy.propagate(text, **options)


def test_the_first_call_wins_as_in_the_reference() -> None:
    """With shared functions, a call beside a loop comes before one in it, wherever they stand in the text."""
    text = f"""{MESH}func.func @main(%x: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{}}]>}}, %n: tensor<i32>)
    -> ({T}, {T}) {{
  %0 = stablehlo.add %x, %x : {T}
  %t = stablehlo.transpose %0, dims = [1, 0] : ({T}) -> {T}
  %1:2 = stablehlo.while(%i = %n, %y = %0) : tensor<i32>, {T}
    cond {{
      %p = stablehlo.compare LT, %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %q = func.call @f(%0) : ({T}) -> {T}
      %z = stablehlo.add %y, %q : {T}
      stablehlo.return %i, %z : tensor<i32>, {T}
    }}
  %2 = call @f(%t) : ({T}) -> {T}
  return %1#1, %2 : {T}, {T}
}}
func.func private @f(%y: {T}) -> {T} {{
  %r = stablehlo.negate %y : {T}
  return %r : {T}
}}"""
    result = sdy.propagate(text, dedup_functions_fully=True)
    assert str(result.sharding(result.program.functions["f"].regions[0].block.arguments[0])) == ('<@mesh, [{}, {"a"}]>')


def test_explicit_collectives_surround_ops_without_a_rule() -> None:
    """An op that nobody knows gets a whole tensor, and its result is cut up behind it."""
    sharding = '{sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}'
    text = f"""{MESH}func.func @main(%x: {T} {sharding}) -> ({T} {sharding}) {{
  %0 = "other.op"(%x) : ({T}) -> {T}
  return %0 : {T}
}}"""
    names = [op.name for op in sdy.propagate(text, explicit_collectives=True).program.walk()]
    assert names[2:] == ["sdy.all_gather", "other.op", "sdy.all_slice", "func.return"]


ODD = f"""{MESH}func.func @main(%x: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{}}]>}}) -> {T} {{
  %0 = stablehlo.negate %x : {T}
  return %0 : {T}
}}"""


def broken_module() -> Any:
    """Return a module in memory with a sharding that has more dimensions than its tensor."""
    from jaxlib.mlir import ir

    module = parse_module(ODD)
    function = module.body.operations[1]
    with module.context:
        function.attributes["arg_attrs"] = ir.Attribute.parse('[{sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}]')
        function.attributes["function_type"] = ir.Attribute.parse("(tensor<8xf32>) -> tensor<8x8xf32>")
    return module


def test_modules_in_memory_are_verified_unless_told_otherwise() -> None:
    """MLIR says what is wrong with a module that was made in memory; without its verifier nobody asks it."""
    with pytest.raises(VerificationError, match="type of entry block argument #0"):
        sdy.propagate(broken_module())
    with pytest.raises(UnsupportedError, match=r"has rank 1, the value has type tensor<8x8xf32>"):
        sdy.propagate(broken_module(), verify=False)
    with pytest.raises(VerificationError, match="type of entry block argument #0"):
        Session.open(broken_module())
    with pytest.raises(UnsupportedError, match=r"has rank 1, the value has type tensor<8x8xf32>"):
        Session.open(broken_module(), verify=False)


@pytest.mark.parametrize(("verify", "times"), [(True, 2), (False, 0)])
def test_collectives_are_verified_unless_told_otherwise(
    verify: bool, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of jaxlib with collectives is verified as it comes in and as it goes out, or not at all."""
    from shardy_py.frontends.mlir import load

    calls = []
    monkeypatch.setattr(load, "verify", lambda module, name="-": calls.append(name))
    shardings = {"in_shardings": ['<@mesh, [{"a"}, {}]>'], "out_shardings": ['<@mesh, [{}, {"a"}]>']}
    result = sdy.propagate(parse_module(ODD), verify=verify, explicit_collectives=True, **shardings)
    assert "sdy.all_to_all" in result.text
    assert len(calls) == times


@pytest.mark.parametrize("form", [ODD, parse_module])
def test_results_are_the_same_without_the_verifier(form: Any) -> None:
    """The verifier only looks."""
    module = form if isinstance(form, str) else form(ODD)
    result = sdy.propagate(module, verify=False)
    assert result.text == sdy.propagate(ODD).text
    assert str(result.sharding("%0")) == '<@mesh, [{"a"}, {}]>'


def test_texts_are_verified_as_they_are_parsed() -> None:
    """A text that is not valid is refused whatever the option says."""
    with pytest.raises(ParseError):
        sdy.propagate(ODD.replace("negate %x", "negate %y"), verify=False)
