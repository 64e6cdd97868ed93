"""Passes of plugins run where they say."""

from __future__ import annotations

import types
from typing import ClassVar

import pytest
from attrs import frozen

import shardy_py as sdy
from shardy_py.cli.opt_passes import parse_arguments, transform
from shardy_py.cost.session import Session
from shardy_py.errors import PluginError
from shardy_py.frontends.mlir import load, parse_module
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import tensor
from shardy_py.plugins import Registry
from shardy_py.transforms.pipelines import PropagationPipeline
from shardy_py.transforms.plugin_passes import with_plugin_passes

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


@frozen
class FalseTypePass:
    """Give additions results of another element type than their operands, and convert these back."""

    name: ClassVar[str] = "toy-false-type"
    runs_before: ClassVar[str | None] = "sdy-close-shardings"

    def run(self, program, context):
        """Replace in place."""
        for op in [op for op in program.walk() if op.name == "stablehlo.add"]:
            false = Op(program, op.name, op.operands, [tensor(8, 4, dtype="i32")])
            back = Op(program, "stablehlo.convert", false.results, [op.result.type])
            op.parent.insert_before(op, false)
            op.parent.insert_before(op, back)
            op.result.replace_all_uses_with(back.result)
            op.erase()


@frozen
class FalseTypeOnDemandPass(FalseTypePass):
    """The same in pipelines that name it only."""

    runs_before: ClassVar[None] = None


def plugin(*classes):
    """Return a plugin with passes."""
    return types.SimpleNamespace(__name__="toy", shardy_register_passes=sdy.hookimpl(lambda: list(classes)))


def test_a_plugin_turns_its_constants_into_those_of_sdy() -> None:
    """The pass runs before the one it names, so that its constants are treated as all others."""
    seen = []
    result = sdy.propagate(TEXT, plugins=[plugin(ConstantsPass)], on_pass=lambda name, program: seen.append(name))
    assert seen[seen.index("toy-constants") + 1] == "sdy-constant-or-scalar-splitter"
    assert seen.count("toy-constants") == 1
    assert " = sdy.constant " in result.text
    assert str(result.sharding("%0")) == '<@mesh, [{"a"}, {}]>'


def places():
    """Return where a pass may ask to run: beside every pass of the pipeline, before and after."""
    names = sorted({item.name for item in PropagationPipeline().passes})
    return [(place, name) for name in names for place in ("runs_before", "runs_after")]


def spy(place, name, seen):
    """Return the class of a pass that takes down the names of the ops that it finds."""

    class SpyPass:
        def run(self, program, context):
            seen.append((place, name, sorted(op.name for op in program.walk())))

    SpyPass.name = f"toy-{place}-{name}"
    setattr(SpyPass, place, name)
    return SpyPass


def run_propagate(plugin):
    """Run by the function."""
    sdy.propagate(TEXT, plugins=[plugin], explicit_collectives=True)


def run_session(plugin):
    """Run by a session."""
    session = Session.open(TEXT, plugins=[plugin])
    session.finish(session.solve())


def run_opt(plugin):
    """Run by the command."""
    options = "enable-insert-explicit-collectives=true reshard-ops-without-rule=true"
    command = parse_arguments([f"-sdy-propagation-pipeline={options}"])
    transform(TEXT, "-", command, Registry.from_entry_points(plugins=[plugin]))


def test_passes_run_in_the_same_places_whoever_runs_the_pipeline() -> None:
    """`propagate`, a session and ``shardy-opt`` show each the same program, once."""
    collected: dict = {}
    for runner in (run_propagate, run_session, run_opt):
        collected[runner] = []
        runner(plugin(*(spy(place, name, collected[runner]) for place, name in places())))
    assert sorted(item[:2] for item in collected[run_propagate]) == sorted(places())
    assert collected[run_session] == collected[run_propagate]
    assert collected[run_opt] == collected[run_propagate]


@pytest.mark.parametrize("place", ["runs_before", "runs_after"])
def test_a_pass_stands_before_the_first_or_after_the_last_of_a_name(place: str) -> None:
    """A pass runs once, also beside a name that a pipeline has several times."""
    registry = Registry.from_entry_points(plugins=[plugin(spy(place, "symbol-dce", []))])
    names = [item.name for item in with_plugin_passes(PropagationPipeline().passes, registry)]
    dead = [index for index, name in enumerate(names) if name == "symbol-dce"]
    assert len(dead) > 1
    pass_name = f"toy-{place}-symbol-dce"
    assert names.count(pass_name) == 1
    assert names.index(pass_name) == (dead[0] - 1 if place == "runs_before" else dead[-1] + 1)


def test_a_pass_with_two_places_is_an_error() -> None:
    """It runs once, so that one of the places would be ignored."""
    class_ = spy("runs_before", "symbol-dce", [])
    class_.runs_after = "symbol-dce"
    with pytest.raises(PluginError, match="runs_before and runs_after"):
        sdy.propagate(TEXT, plugins=[plugin(class_)])


def test_a_pass_that_names_none_does_not_run() -> None:
    """Without ``runs_before`` a pass is for pipelines that name it."""
    assert "toy.full" in sdy.propagate(TEXT, plugins=[plugin(OnDemandPass)]).text


def test_a_pass_that_names_an_unknown_one_is_an_error() -> None:
    """The error has the closest name that exists."""
    with pytest.raises(
        PluginError, match=r"to run before 'sdy-constant-splitter'.*\n.*sdy-constant-or-scalar-splitter"
    ):
        sdy.propagate(TEXT, plugins=[plugin(LostPass)])


def test_what_a_pass_of_a_plugin_leaves_is_verified_by_mlir() -> None:
    """A result that breaks an invariant of one of its ops is an error, as is none of a pass that does not run."""
    with pytest.raises(sdy.VerificationError, match="requires the same element type"):
        sdy.propagate(TEXT, plugins=[plugin(FalseTypePass)])
    assert sdy.propagate(TEXT, plugins=[plugin(FalseTypeOnDemandPass)]).text


@frozen
class RenamePass(ConstantsPass):
    """Calls an op of the module by another name."""

    def run(self, program, context):
        """Rename in place."""
        for op in program.walk():
            if op.name == "toy.full":
                op.name = "sdy.constant"


def test_a_pass_that_renames_an_op_is_an_error() -> None:
    """The op of the native module would keep its name, and the pass would have had no effect."""
    with pytest.raises(PluginError, match=r"toy\.full is called sdy\.constant now; make another op"):
        sdy.propagate(TEXT, plugins=[plugin(RenamePass)])


def test_a_program_that_no_plugin_changes_is_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLIR's verifiers look at what comes in; passes of plugins that do not run are no reason to look again."""
    looks = []
    monkeypatch.setattr(load, "verify", lambda module, name="-": looks.append(name))
    module = parse_module(TEXT)
    sdy.propagate(module, plugins=[plugin(FalseTypeOnDemandPass)])
    assert len(looks) == 1
