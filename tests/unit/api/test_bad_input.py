"""Input that is wrong, unusual or more than can be handled: one clear error with place and fix, or the right answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.errors import ShardyError

pytest.importorskip("jaxlib", reason="the programs are written in MLIR")

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>\n'
A = '{sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}'
T = "tensor<8xf32>"
CALL = f"call @f(%a) : ({T}) -> {T}"


def main(*lines: str, arguments: str = f"%a: {T} {A}", result: str = "%0", rest: str = "") -> str:
    """Return a module with a main function from a vector sharded over "a" to a vector."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"{MESH}func.func @main({arguments}) -> {T} {{\n{body}\n  return {result} : {T}\n}}\n{rest}"


def identity(argument: str) -> str:
    """Return a module whose second argument is returned, and whose first one is the given one."""
    return main(arguments=f"%x: {argument}, %a: {T} {A}", result="%a")


def nested(depth: int) -> str:
    """Return a module with ops whose regions are nested."""
    lines = [f'%r{index} = "stablehlo.case"(%i) ({{' for index in range(depth)]
    lines += [f"%t = stablehlo.tanh %a : {T}", f"stablehlo.return %t : {T}"]
    for index in reversed(range(depth)):
        lines.append(f"}}) : (tensor<i32>) -> {T}")
        if index:
            lines.append(f"stablehlo.return %r{index} : {T}")
    return main(*lines, arguments=f"%a: {T} {A}, %i: tensor<i32>", result="%r0")


def chained(count: int, *, calls: int = 1) -> str:
    """Return a module with functions that call each the next one; the first is called some times."""
    rest = [function(index, f"%0 = call @f{index + 1}(%a) : ({T}) -> {T}") for index in range(count - 1)]
    rest.append(function(count - 1, f"%0 = stablehlo.tanh %a : {T}"))
    return main(*[f"%{index} = call @f0(%a) : ({T}) -> {T}" for index in range(calls)], rest="".join(rest))


def function(name: Any, line: str) -> str:
    """Return a private function of one op."""
    return f"func.func private @f{name}(%a: {T}) -> {T} {{\n  {line}\n  return %0 : {T}\n}}\n"


UNREDUCED = '<@mesh, [{}], unreduced={"a"}>, <@mesh, [{}], unreduced={"b"}>'
REFUSED = {
    "malformed text": ("func.func @main( {", "malformed-module", r"^-:1:\d+: error: "),
    "a path as text": ("missing.mlir", "malformed-module", r"give the name of a file as a pathlib\.Path"),
    "no text": ("", "no-function", "put the program into a func.func"),
    "empty module": ("module {}", "no-function", "put the program into a func.func"),
    "only a mesh": (MESH, "no-function", "put the program into a func.func"),
    "unknown axis": (main(result="%a").replace('"a"}]', '"z"}]'), "malformed-module", '^-:2:1: error: .*"z"'),
    "unknown mesh": (main(result="%a").replace("<@mesh", "<@mash"), "malformed-module", "^-:2:1: error: .*@mash"),
    "wrong rank": (main(result="%a").replace('{"a"}]', '{"a"}, {}]'), "malformed-module", "^-:2:1: error: .*rank"),
    "unranked result": (
        main(f"%0 = stablehlo.custom_call @f(%a) : ({T}) -> tensor<*xf32>", result="%a"),
        "unsupported-type",
        r"^-:3:8: error: 'stablehlo\.custom_call' op: .*static shape.*\n  hint: give every dimension a size",
    ),
    "unranked argument": (identity("tensor<*xf32>"), "unsupported-type", "^-:2:1: error: .*argument 0: .*static shape"),
    "tuple as argument": (identity(f"tuple<{T}>"), "unsupported-type", "^-:2:1: error: .*argument 0: .*tuples"),
    "tuple": (main(f"%0 = stablehlo.tuple %a : tuple<{T}>", result="%a"), "unsupported-type", "^-:3:8: .*tuples"),
    "no main": (
        main(result="%a").replace("@main", "@f") + function("g", f"%0 = stablehlo.tanh %a : {T}"),
        "no-main-function",
        "^-:2:1: error: .*@f, @fg.*\n  hint: rename the entry function to main",
    ),
    "recursion": (
        main(f"%0 = {CALL.replace('@f', '@fg')}", rest=function("g", f"%0 = {CALL.replace('@f', '@fg')}")),
        "recursion",
        r"^-:\d+:8: error: 'func\.call' op: .*@fg -> @fg.*\n  hint: unroll",
    ),
    "call of nothing": (main(f"%0 = {CALL}"), "malformed-module", "^-:3:8: error: .*'f' does not reference"),
    "edge on an argument": (
        main(f"%0 = sdy.data_flow_edge %a : {T}"),
        "dangling-edge",
        r"^-:3:8: error: 'sdy\.data_flow_edge' op: .*\n  hint: ",
    ),
    "edge on an imported call": (
        main(
            f"%0 = {CALL}",
            f"%1 = sdy.func_data_flow_edge %0 : {T}",
            result="%1",
            rest=function("", f"%0 = stablehlo.tanh %a : {T}"),
        ),
        "dangling-edge",
        r"^-:4:8: error: 'sdy\.func_data_flow_edge' op: .*\n  hint: its input must be an argument of a function",
    ),
    "different unreduced axes": (
        main(
            f"%0:2 = stablehlo.custom_call @f(%a) {{sdy.sharding = #sdy.sharding_per_value<[{UNREDUCED}]>}}"
            f" : ({T}) -> ({T}, {T})",
            f"%1 = stablehlo.add %0#0, %0#1 : {T}",
            result="%1",
            arguments=f"%a: {T}",
        ),
        "unreduced-mismatch",
        r"^-:3:10: error: 'stablehlo\.custom_call' op: .*\n  hint: give all results",
    ),
    "deep regions": (nested(300), "nested-too-deeply", "^-:.*: error: .*\n  hint: move what is inside to functions"),
    "very deep regions": (nested(3000), "nested-too-deeply", "^-:.*: error: .*\n  hint: move what is inside"),
    "deep calls": (
        chained(1500, calls=2),
        "nested-too-deeply",
        "'func.func' op: .*\n  hint: shorten the chain",
    ),
    "nothing": (None, "unknown-input", "give MLIR text"),
    "a number": (42, "unknown-input", "give MLIR text"),
    "garbage": (b"\xff\xfe\x00", "malformed-module", "^-:1:1: error: "),
    "garbage as bytecode": (b"ML\xefR\x06garbage", "malformed-module", "bytecode version"),
    "no Unicode": ("func.func @main() \udc80", "malformed-module", "not valid Unicode"),
    "no file": (Path("missing.mlir"), "unreadable-file", "^missing.mlir: error: cannot read the file: No such file"),
    "a folder": (Path(), "unreadable-file", r"^\.: error: cannot read the file: Is a directory"),
    "no path": (Path("missing\0.mlir"), "unreadable-file", "cannot read the file"),
}


@pytest.mark.parametrize(("module", "code", "pattern"), REFUSED.values(), ids=REFUSED)
def test_refused(module: Any, code: str, pattern: str) -> None:
    """What cannot be propagated is one error, which names the place and, where there is one, the fix."""
    with pytest.raises(ShardyError, match=pattern) as caught:
        sdy.propagate(module)
    assert [item.code for item in caught.value.diagnostics] == [code]


@pytest.mark.parametrize("options", [{"dedup_functions_fully": True}, {"explicit_collectives": True}])
def test_refused_whatever_the_options(options: dict[str, bool]) -> None:
    """No option makes an error of another kind; but functions may call themselves where all calls share them."""
    for name, (module, _, _) in REFUSED.items():
        shares = options.get("dedup_functions_fully")
        if not (shares and name in ("recursion", "deep calls")):
            with pytest.raises(ShardyError):
                sdy.propagate(module, **options)


def test_given_modules_stay_as_they_are() -> None:
    """A module that is refused half way is not changed."""
    from shardy_py.frontends.mlir import parse_module

    module = parse_module(REFUSED["different unreduced axes"][0])
    before = str(module)
    with pytest.raises(ShardyError):
        sdy.propagate(module)
    assert str(module) == before


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"strategy": "best"}, "unknown-strategy"),
        ({"strategy": None}, "unknown-strategy"),
        ({"mesh": 3}, "invalid-mesh"),
        ({"mesh": {"a": 0}}, "axis-size"),
        ({"mesh": {"a": 2}}, "mesh-conflict"),
        ({"in_shardings": {0: ("z",)}}, "unknown-axis"),
        ({"in_shardings": {0: ("a", "b")}}, "sharding-rank"),
        ({"in_shardings": {1: ("a",)}}, "unknown-argument"),
        ({"in_shardings": {0: 3}}, "invalid-sharding"),
    ],
    ids=str,
)
def test_wrong_options(options: dict[str, Any], code: str) -> None:
    """An option that does not fit is refused with a code of its own."""
    with pytest.raises(ShardyError) as caught:
        sdy.propagate(main(result="%a"), **options)
    assert [item.code for item in caught.value.diagnostics] == [code]


def test_calls_of_declarations() -> None:
    """A function without a body is called with replicated data, or as its own shardings say."""
    declaration = f"func.func private @f({T}) -> {T}\n"
    text = main(f"%0 = {CALL}", f"%1 = stablehlo.tanh %0 : {T}", result="%1", rest=declaration)
    result = sdy.propagate(text)
    assert "%0 = sdy.reshard %arg0 <@mesh, [{}]>" in result.text
    assert "call @f(%0)" in result.text
    assert result.results == (None,)
    b = A.replace('"a"', '"b"')
    result = sdy.propagate(text.replace(declaration, f"func.func private @f({T} {b}) -> ({T} {b})\n"))
    assert [str(item) for item in result.results] == ['<@mesh, [{"b"}]>']


def test_recursion_that_nobody_starts() -> None:
    """Functions that the program does not reach may call each other in a circle; they are dropped."""
    text = main(f"%0 = stablehlo.tanh %a : {T}", rest=function("g", f"%0 = {CALL.replace('@f', '@fg')}"))
    assert list(sdy.propagate(text).program.functions) == ["main"]


def test_edges_of_the_user() -> None:
    """An edge that is there already counts as the one that is added otherwise."""
    barrier = f"%0:2 = stablehlo.optimization_barrier %a, %a : {T}, {T}"
    with_edge = main(
        barrier,
        f"%1 = sdy.data_flow_edge %0#0 : {T}",
        f"%2 = stablehlo.add %1, %0#1 : {T}",
        result="%2",
    )
    without = main(barrier, f"%2 = stablehlo.add %0#0, %0#1 : {T}", result="%2")
    assert sdy.propagate(with_edge).text == sdy.propagate(without).text
    sharded = with_edge.replace("edge %0#0 :", 'edge %0#0 sharding=<@mesh, [{"b"}]> :')
    assert str(sdy.propagate(sharded).sharding("%0#0")) == '<@mesh, [{"b"}]>'


@pytest.mark.parametrize("op", ["stablehlo.tanh %a", "stablehlo.custom_call @f(%a)"])
def test_priorities_of_dead_ops(op: str) -> None:
    """An op that nothing uses goes away, with whatever priority its sharding had."""
    types = f"({T}) -> {T}" if "call" in op else T
    dead = f'%0 = {op} {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"a", ?}}p1]>]>}} : {types}'
    assert sdy.propagate(main(dead, result="%a")).text == sdy.propagate(main(result="%a")).text


def test_named_computations_of_the_user() -> None:
    """A named computation in the input becomes a function of that name, as one that came from a call."""
    text = main(
        f'%0 = sdy.named_computation<"f">(%a) (%x: {T}) {{',
        f"%1 = stablehlo.tanh %x : {T}",
        f"sdy.return %1 : {T}",
        f"}} : ({T}) -> {T}",
    )
    called = main(f"%0 = {CALL}", rest=function("", f"%0 = stablehlo.tanh %a : {T}"))
    assert sdy.propagate(text).text == sdy.propagate(called).text


def test_deep_nesting() -> None:
    """A hundred nested regions are no problem, nor is a long chain of calls, nor a copied one of a hundred."""
    for text in (nested(100), chained(100, calls=2), chained(1500)):
        assert [str(item) for item in sdy.propagate(text).results] == ['<@mesh, [{"a"}]>']


@pytest.mark.parametrize("name", ["main", "other"])
def test_private_functions_may_be_the_program(name: str) -> None:
    """A private function is the program where there is no public one."""
    text = main(f"%0 = stablehlo.tanh %a : {T}").replace("@main", f"private @{name}")
    assert [str(item) for item in sdy.propagate(text).results] == ['<@mesh, [{"a"}]>']


def test_programs_without_a_mesh_or_shardings() -> None:
    """Where there is nothing to propagate the program stays as it is."""
    text = f"func.func @main(%a: {T}) -> {T} {{\n  return %a : {T}\n}}"
    assert "sdy" not in sdy.propagate(text).text
    assert sdy.propagate("func.func @main() { return }").results == ()
