"""Passes of plugins run where they say."""

from __future__ import annotations

import types
from typing import ClassVar

import pytest
from attrs import frozen

import shardy_py as sdy
from shardy_py.analysis.session import Session
from shardy_py.errors import PluginError
from shardy_py.ir.graph import Op

pytest.importorskip("jaxlib", reason="the program is an MLIR module")

TEXT = """sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x4xf32> {
  %c = "toy.full"() {value = dense<1.0> : tensor<8x4xf32>} : () -> tensor<8x4xf32>
  %0 = stablehlo.add %x, %c : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}"""


@frozen
class ConstantsPass:
    """Turn ``toy.full`` into ``sdy.constant``."""

    name: ClassVar[str] = "toy-constants"
    runs_before: ClassVar[str] = "sdy-constant-or-scalar-splitter"

    def run(self, program, context):
        """Replace in place."""
        for op in [op for op in program.walk() if op.name == "toy.full"]:
            types = [value.type for value in op.results]
            constant = Op(program, "sdy.constant", (), types, {"value": op.attributes["value"]})
            op.parent.insert_before(op, constant)
            op.result.replace_all_uses_with(constant.result)
            op.erase()


@frozen
class LostPass(ConstantsPass):
    """Names a pass that there is not."""

    runs_before: ClassVar[str] = "sdy-constant-splitter"


@frozen
class OnDemandPass(ConstantsPass):
    """Runs in pipelines that name it only."""

    runs_before: ClassVar[None] = None


def plugin(class_):
    """Return a plugin with a pass."""
    return types.SimpleNamespace(__name__="toy", shardy_register_passes=sdy.hookimpl(lambda: [class_]))


def test_a_plugin_turns_its_constants_into_those_of_sdy() -> None:
    """The pass runs before the one it names, so that its constants are treated as all others."""
    seen = []
    result = sdy.propagate(TEXT, plugins=[plugin(ConstantsPass)], on_pass=lambda name, program: seen.append(name))
    assert seen[seen.index("toy-constants") + 1] == "sdy-constant-or-scalar-splitter"
    assert seen.count("toy-constants") == 1
    assert " = sdy.constant " in result.text
    assert str(result.sharding("%0")) == '<@mesh, [{"a"}, {}]>'


def test_a_session_runs_it_too() -> None:
    """What is compiled once has gone through the passes of plugins."""
    session = Session.open(TEXT, plugins=[plugin(ConstantsPass)])
    assert not [op for op in session.program.walk() if op.name == "toy.full"]


def test_a_pass_that_names_none_does_not_run() -> None:
    """Without ``runs_before`` a pass is for pipelines that name it."""
    assert "toy.full" in sdy.propagate(TEXT, plugins=[plugin(OnDemandPass)]).text


def test_a_pass_that_names_an_unknown_one_is_an_error() -> None:
    """The error has the closest name that exists."""
    with pytest.raises(
        PluginError, match=r"to run before 'sdy-constant-splitter'.*\n.*sdy-constant-or-scalar-splitter"
    ):
        sdy.propagate(TEXT, plugins=[plugin(LostPass)])
