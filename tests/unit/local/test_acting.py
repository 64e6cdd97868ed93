"""Ops that act outside of the program, in local programs."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("jaxlib", reason="programs are MLIR text")

import shardy_py as sdy

TEXT = """
sdy.mesh @mesh = <["x"=2], device_ids=[1, 0]>
func.func @main(%x: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x8xf32> {
  "my.print"(%x) {label = "first"} : (tensor<4x8xf32>) -> ()
  return %x : tensor<4x8xf32>
}
"""


def local(text: str, *, pure: bool = False) -> str:
    """Return the local program of a text with a print."""
    my = sdy.Dialect("my")
    my.op("my.print", traits=[sdy.Pure] if pure else [])

    class Plugin:
        @staticmethod
        @sdy.hookimpl
        def shardy_register_dialects() -> list[sdy.Dialect]:
            return [my]

    return sdy.propagate(text, plugins=[Plugin()], local=True).local().text


def test_a_print_stands_in_a_branch_for_one_device() -> None:
    """The whole operand is printed under a comparison of the device's number; collectives stand before the branch."""
    text = local(TEXT)
    before, _, branch = text.partition('"stablehlo.if"')
    assert "all_gather" in before
    assert '"my.print"' not in before
    assert re.search(r'"my.print"\(%\d+\) \{label = "first"\} : \(tensor<4x8xf32>\)', branch)
    assert "collective" not in branch


def test_a_manual_computation_says_itself_what_each_device_does() -> None:
    """What stands in the body of a manual computation runs on each device."""
    body = """%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
      manual_axes={"x"} (%s: tensor<2x8xf32>) {
        "my.print"(%s) : (tensor<2x8xf32>) -> ()
        sdy.return %s : tensor<2x8xf32>
      } : (tensor<4x8xf32>) -> tensor<4x8xf32>
      return %0"""
    start, _, rest = TEXT.partition('  "my.print"')
    text = local(start + body + rest.partition("return %x")[2])
    assert "stablehlo.if" not in text
    assert '"my.print"(%arg0) : (tensor<2x8xf32>)' in text


def test_one_device_needs_no_branch() -> None:
    """Without other devices an op runs as it is."""
    assert "stablehlo.if" not in local(TEXT.replace('"x"=2], device_ids=[1, 0]', '"x"=1]'))
