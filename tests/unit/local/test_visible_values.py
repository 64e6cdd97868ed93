"""Local forms that use values of other blocks, or forget regions, are refused; the error names their op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="programs are MLIR text")

import shardy_py as sdy
from shardy_py.errors import PluginError
from shardy_py.plugins import Dialect

ROWS = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
M = "tensor<4x8xf32>"
ONCE = f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: {M} {ROWS}) -> {M} {{
  %0 = "my.op"(%a) : ({M}) -> {M}
  %1 = "my.half"(%0) : ({M}) -> {M}
  return %1 : {M}
}}"""
TWICE = f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: {M} {ROWS}) -> {M} {{
  %0 = func.call @inner(%a) : ({M}) -> {M}
  %1 = "my.op"(%0) : ({M}) -> {M}
  return %1 : {M}
}}
func.func private @inner(%a: {M}) -> {M} {{
  %0 = "my.op"(%a) : ({M}) -> {M}
  return %0 : {M}
}}"""
REGION = f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: {M} {ROWS}) -> {M} {{
  %0 = "my.op"(%a) ({{
  ^bb0(%p: {M}):
    %1 = "my.half"(%p) : ({M}) -> {M}
    "my.yield"(%1) : ({M}) -> ()
  }}) : ({M}) -> {M}
  return %0 : {M}
}}"""


def make_local(text: str, form: Callable[..., Any]) -> str:
    """Return the local program of a text in which ``my.op`` has a local form."""
    my = Dialect("my")
    my.op("my.op", rule="i j -> i j", local=form)
    my.op("my.half", traits=[sdy.Elementwise])
    my.op("my.yield", traits=[sdy.IsTerminator])

    class Plugin:
        @staticmethod
        @sdy.hookimpl
        def shardy_register_dialects() -> list[Dialect]:
            return [my]

    return sdy.propagate(text, plugins=[Plugin()], explicit_collectives=True).local(optimize=False).text


def emit_on(op: Any, shard: Any, operands: Any) -> list[Any]:
    """Emit the op on operands, with the type that it has on each device."""
    return list(shard.emit.op_like(op, operands, [shard.result_type()]).results)


@pytest.mark.parametrize(
    "form",
    [
        lambda op, shard: emit_on(op, shard, op.operands),
        lambda op, shard: emit_on(op, shard, op.results),
        lambda op, shard: emit_on(op, shard, [op.results[0].users[0].results[0]]),
    ],
    ids=["operands", "results", "later"],
)
def test_an_op_of_a_local_form_uses_no_value_on_whole_tensors(form: Callable[..., Any]) -> None:
    """The values of the op itself are those of the program on whole tensors, which are gone in the local program."""
    with pytest.raises(PluginError, match=r"'my.op' op: the op 'my.op' of its local form uses .* not visible"):
        make_local(ONCE, form)


@pytest.mark.parametrize("returns", [True, False])
def test_a_local_form_uses_no_value_of_another_function(returns: bool) -> None:
    """A value that a form keeps from the op before has the right type, and may belong to another function."""
    values: list[Any] = []

    def form(op: Any, shard: Any) -> Any:
        results = emit_on(op, shard, [*values[:1], *shard.operands][:1])
        values.extend(results)
        return values[:1] if returns else results

    with pytest.raises(PluginError, match=r"my.op' .*not visible where the op runs"):
        make_local(TWICE, form)


def test_a_local_form_returns_no_result_of_an_erased_op() -> None:
    """An erased op is in no block, so that its results are visible nowhere."""

    def form(op: Any, shard: Any) -> Any:
        results = emit_on(op, shard, shard.operands)
        results[0].owner.erase()
        return results

    with pytest.raises(PluginError, match=r"its local form uses a result of 'my\.op'"):
        make_local(ONCE, form)


def test_a_local_form_keeps_the_regions_of_its_op() -> None:
    """An op like one with regions has them, too; the error shows how to give them."""
    with pytest.raises(PluginError, match=r"expected 1 regions as in 'my.op', got 0; give regions=shard.regions"):
        make_local(REGION, lambda op, shard: emit_on(op, shard, shard.operands))


def test_a_local_form_may_use_what_it_emits_and_what_is_around() -> None:
    """Operands on the device, and results of ops of the form itself, are visible."""
    text = make_local(ONCE, lambda op, shard: emit_on(op, shard, emit_on(op, shard, shard.operands)))
    assert text.count('"my.op"') == 2
