"""Ops of dialects that jaxlib does not have are read in MLIR's usual format, with their properties."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="MLIR reads the modules")

import shardy_py as sdy
from shardy_py.errors import ParseError
from shardy_py.frontends.mlir import import_module, parse_module

TEXT = """
!whole = tensor<8x4xf32>
!half = tensor<4x4xf32>
module {
  func.func @main(%x: !whole) -> !whole {
    %0 = toy.add %x, %x {note = "a : b {", toy.flag} : (!whole, !whole) -> !whole loc("a.py":3:1)
    %1:2 = toy.split %0 {
      count = 2 : i64
    } : (!whole) -> (!half, !half)
    %2 = "toy.join"(%1#0, %1#1) <{axis = 0 : i32}> {more = 1 : i32} : (!half, !half) -> !whole
    %3 = "toy.region"(%2) <{axis = 1 : i32}> ({
    ^bb0(%a: !whole):
      %4 = toy.neg %a : !whole
      toy.yield %4 : !whole // toy.yield %x : no
    }) : (!whole) -> !whole
    toy.done
    return %3 : !whole
  }
}
"""


def test_the_usual_format_is_read() -> None:
    """Operands, attributes, properties and types are those of the text; strings, comments and locations stay."""
    program = import_module(parse_module(TEXT))
    ops = {op.name: op for op in program.walk() if op.name.startswith("toy.")}
    assert [str(value.type) for value in ops["toy.split"].results] == ["tensor<4x4xf32>"] * 2
    assert dict(ops["toy.add"].attributes)["note"] == "a : b {"
    assert ops["toy.add"].location == "a.py:3:1"
    assert ops["toy.split"].attributes["count"] == 2
    assert dict(ops["toy.join"].attributes) == {"axis": 0, "more": 1}
    assert ops["toy.region"].attributes["axis"] == 1
    assert str(ops["toy.neg"].operands[0].type) == "tensor<8x4xf32>"
    assert not ops["toy.done"].operands


def test_what_is_read_is_propagated_and_read_again() -> None:
    """The module that comes out is in MLIR's generic form, which MLIR with the dialect reads, too."""
    toy = sdy.Dialect("toy")
    toy.op("toy.add", traits=[sdy.Elementwise])
    body = "%0 = toy.add %x, %x : tensor<8xf32>\n  return %0 : tensor<8xf32>"
    text = f"func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {{\n  {body}\n}}"
    result = sdy.propagate(text, {"d": 2}, in_shardings={0: ("d",)}, registry=sdy.Registry.of([toy]))
    assert '"toy.add"(%arg0, %arg0) {sdy.sharding' in result.text
    assert str(sdy.propagate(result.text, registry=sdy.Registry.of([toy])).results[0]) == '<@mesh, [{"d"}]>'


def test_a_format_of_its_own_is_refused_with_its_place() -> None:
    """An op in another format is the one that the error names."""
    with pytest.raises(ParseError, match=r"-:3:\d+: .*toy\.other"):
        parse_module("func.func @main(%x: f32) {\n  toy.done\n  toy.other ins(%x : f32)\n  return\n}")
