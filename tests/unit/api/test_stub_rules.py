"""A stub plugin is valid on the program that it was made from."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import shardy_py as sdy
from shardy_py.plugins.plugin_files import load_plugin_file

HEADER = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %y: tensor<16x8xf32>,
                %p: tensor<i1>, %n: tensor<i32>) -> tensor<8x16xf32> {
"""
FOOTER = """
  return %r : tensor<8x16xf32>
}
"""
T = "tensor<8x16xf32>"

PROGRAMS = {
    "elementwise and contraction": f"""
  %0 = "ab.dot"(%x, %y) : ({T}, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = "ab.dot"(%y, %x) : (tensor<16x8xf32>, {T}) -> tensor<16x16xf32>
  %2 = "ab.mix"(%0, %1) : (tensor<8x8xf32>, tensor<16x16xf32>) -> {T}
  %r = "ab.add"(%2, %x) : ({T}, {T}) -> {T}""",
    "one name, several ranks": f"""
  %0 = "ab.sum"(%x) : ({T}) -> tensor<8xf32>
  %1 = "ab.sum"(%0) : (tensor<8xf32>) -> tensor<f32>
  %r = "ab.spread"(%1, %x) : (tensor<f32>, {T}) -> {T}""",
    "one name, transposed and not": f"""
  %0 = "ab.view"(%x) : ({T}) -> tensor<16x8xf32>
  %1 = "ab.view"(%0) : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %r = "ab.view"(%1) : (tensor<16x8xf32>) -> {T}""",
    "other counts of operands and sizes": f"""
  %0 = "ab.zip"(%x, %x) : ({T}, {T}) -> {T}
  %1 = "ab.zip"(%0, %0, %0) : ({T}, {T}, {T}) -> {T}
  %2 = "ab.empty"(%1) : ({T}) -> tensor<0x16xf32>
  %3 = "ab.one"(%1) : ({T}) -> tensor<1x16xf32>
  %r = "ab.zip"(%1) : ({T}) -> {T}""",
    "odd names": f"""
  %0 = "a-b.add-it"(%x, %x) : ({T}, {T}) -> {T}
  %1 = "class.import"(%0, %0) : ({T}, {T}) -> {T}
  %2 = "1d.2d.rule"(%1, %1) : ({T}, {T}) -> {T}
  %r = "sdy_.op"(%2, %2) : ({T}, {T}) -> {T}""",
    "a loop": f"""
  %r = "ab.loop"(%x) ({{
  ^bb0(%c: {T}):
    %0 = "ab.add"(%c, %c) : ({T}, {T}) -> {T}
    "ab.yield"(%0) : ({T}) -> ()
  }}) : ({T}) -> {T}""",
    "a loop with bounds, a counter and two values": f"""
  %r, %s = "ab.for"(%n, %n, %x, %y) ({{
  ^bb0(%i: tensor<i32>, %c: {T}, %d: tensor<16x8xf32>):
    "ab.yield"(%c, %d) : ({T}, tensor<16x8xf32>) -> ()
  }}) : (tensor<i32>, tensor<i32>, {T}, tensor<16x8xf32>) -> ({T}, tensor<16x8xf32>)""",
    "a loop with a condition": f"""
  %r = "ab.while"(%x) ({{
  ^bb0(%c: {T}):
    %0 = "ab.test"(%c) : ({T}) -> tensor<i1>
    "ab.condition"(%0) : (tensor<i1>) -> ()
  }}, {{
  ^bb0(%c: {T}):
    "ab.yield"(%c) : ({T}) -> ()
  }}) : ({T}) -> {T}""",
    "a branch": f"""
  %r = "ab.if"(%p) ({{
    "ab.yield"(%x) : ({T}) -> ()
  }}, {{
    %0 = "ab.add"(%x, %x) : ({T}, {T}) -> {T}
    "ab.yield"(%0) : ({T}) -> ()
  }}) : (tensor<i1>) -> {T}""",
    "a branch with arguments": f"""
  %q:2 = "ab.if"(%p, %x) ({{
  ^bb0(%a: {T}):
    "ab.yield"(%p, %a) : (tensor<i1>, {T}) -> ()
  }}, {{
  ^bb0(%a: {T}):
    "ab.yield"(%p, %x) : (tensor<i1>, {T}) -> ()
  }}) : (tensor<i1>, {T}) -> (tensor<i1>, {T})
  %r = "ab.add"(%q#1, %x) : ({T}, {T}) -> {T}""",
    "a branch in a loop": f"""
  %r = "ab.loop"(%x) ({{
  ^bb0(%c: {T}):
    %0 = "ab.if"(%p) ({{
      "ab.yield"(%c) : ({T}) -> ()
    }}, {{
      "ab.yield"(%x) : ({T}) -> ()
    }}) : (tensor<i1>) -> {T}
    "ab.yield"(%0) : ({T}) -> ()
  }}) : ({T}) -> {T}""",
    "a region without operands and results": f"""
  "ab.launch"() ({{
    %0 = "ab.add"(%x, %x) : ({T}, {T}) -> {T}
    "ab.end"() : () -> ()
  }}) : () -> ()
  %r = "ab.add"(%x, %x) : ({T}, {T}) -> {T}""",
    "a reduction with a body": f"""
  %r = "ab.reduce"(%x) ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = stablehlo.add %a, %b : tensor<f32>
    "ab.yield"(%0) : (tensor<f32>) -> ()
  }}) : ({T}) -> {T}""",
    "other types": f"""
  %0 = "ab.token"() : () -> !stablehlo.token
  %1:2 = "ab.send"(%x, %0) : ({T}, !stablehlo.token) -> ({T}, !stablehlo.token)
  %r = "ab.add"(%1#0, %x) : ({T}, {T}) -> {T}""",
}
_numbers = itertools.count()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_stub_is_valid_on_its_program(name: str, tmp_path: Path) -> None:
    """With its stub a program of an unknown dialect passes a strict run, without a warning."""
    pytest.importorskip("jaxlib")
    text = HEADER + PROGRAMS[name] + FOOTER
    coverage = sdy.propagate(text).coverage
    assert coverage.missing
    path = tmp_path / f"stubs_{next(_numbers)}.py"
    path.write_text(coverage.stubs)
    result = sdy.propagate(text, plugins=[load_plugin_file(path)], strict=True)
    assert result.warnings == ()
    assert result.coverage.is_complete


@pytest.mark.parametrize(
    ("name", "op", "text"),
    [
        ("a loop", "ab.loop", "data_flow=sdy.LoopDataFlow(), "),
        ("a loop with bounds, a counter and two values", "ab.for", "LoopDataFlow(first_operand=2, first_argument=1)"),
        ("a loop with a condition", "ab.while", "data_flow=sdy.LoopDataFlow(yielding=(1,))"),
        ("a branch", "ab.if", "data_flow=sdy.BranchDataFlow()"),
        ("a branch with arguments", "ab.if", "data_flow=sdy.BranchDataFlow(first_operand=1)"),
        ("a branch", "ab.yield", "traits=[sdy.IsTerminator]"),
        ("a reduction with a body", "ab.reduce", 'rule="i j -> i j"'),
    ],
)
def test_the_guess(name: str, op: str, text: str, tmp_path: Path) -> None:
    """Loops, branches and terminators are told apart by their types."""
    pytest.importorskip("jaxlib")
    stubs = sdy.propagate(HEADER + PROGRAMS[name] + FOOTER).coverage.stubs
    (line,) = [line for line in stubs.splitlines() if f'"{op}"' in line]
    assert text in line


def test_shardings_flow_through_a_guessed_loop(tmp_path: Path) -> None:
    """What a loop is given, what is in it and what comes out are sharded alike, with the stub and not before."""
    pytest.importorskip("jaxlib")
    text = HEADER + PROGRAMS["a loop with a condition"] + FOOTER
    before = sdy.propagate(text)
    path = tmp_path / "stubs_flow.py"
    path.write_text(before.coverage.stubs)
    after = sdy.propagate(text, plugins=[load_plugin_file(path)])
    assert [str(item.sharding(0)) for item in (before, after)] == ['<@mesh, [{"a"}, {}]>'] * 2
    assert (before.results[0], str(after.results[0])) == (None, '<@mesh, [{"a"}, {}]>')


def test_regions_without_data_flow_are_refused_by_strict() -> None:
    """A region op that nobody describes is reported and refused, also where it has no tensors itself."""
    pytest.importorskip("jaxlib")
    text = HEADER + PROGRAMS["a region without operands and results"] + FOOTER
    result = sdy.propagate(text)
    assert "ab.launch" in [item.name for item in result.coverage.missing]
    with pytest.raises(sdy.ShardyError) as caught:
        sdy.propagate(text, strict=True)
    (problem,) = [item for item in caught.value.diagnostics if item.op == "ab.launch"]
    assert "the op has regions, but no data flow" in problem.message


def test_terminators_without_the_trait_are_refused_by_strict() -> None:
    """A loop that is described is not enough: what its regions hand back is lost without the trait."""
    pytest.importorskip("jaxlib")
    ab = sdy.Dialect("ab")
    ab.op("ab.loop", data_flow=sdy.LoopDataFlow())
    ab.op("ab.add", traits=[sdy.Elementwise])
    registry = sdy.Registry.of([ab])
    with pytest.raises(sdy.ShardyError, match="the place of a terminator, but not the trait IsTerminator"):
        sdy.propagate(HEADER + PROGRAMS["a loop"] + FOOTER, registry=registry, strict=True)


def test_a_guess_from_no_operands_says_so() -> None:
    """The types in the comment are those of a function without arguments."""
    text = f"""
    %r = "ab.table"() ({{
      %1 = stablehlo.constant dense<1.0> : {T}
      "ab.end"(%1) : ({T}) -> ()
    }}) : () -> {T}"""
    result = sdy.propagate(HEADER + text + FOOTER)
    stubs = "".join(item.stub for item in result.coverage.missing)
    assert f"# Guessed from the types of () -> {T};" in stubs
