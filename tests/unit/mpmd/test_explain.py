"""Why ops are on their meshes, why there are transfers, and what removes them."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")
pytest.importorskip("click", reason="the command needs click")

from click.testing import CliRunner

import shardy_py as sdy
from shardy_py.cli.app import shardy
from shardy_py.errors import OptionError
from shardy_py.mpmd.explanations.explain import PipelineExplanation

TOPOLOGY = {"m0": {"x": 2}, "m1": {"x": 2}}
NAMES = {"first": "m0", "second": "m1"}
TENSOR = "tensor<4x8xf32>"
STEP = f"""\
func.func @main(%x: {TENSOR}, %y: {TENSOR}) -> {TENSOR} {{
  %0 = call @first(%x) : ({TENSOR}) -> {TENSOR}
  %1 = "my.halve"(%0) : ({TENSOR}) -> {TENSOR}
  %2 = call @second(%1, %y) : ({TENSOR}, {TENSOR}) -> {TENSOR}
  return %2 : {TENSOR}
}}
func.func private @first(%x: {TENSOR}) -> {TENSOR} {{
  %0 = "my.relu"(%x) : ({TENSOR}) -> {TENSOR}
  return %0 : {TENSOR}
}}
func.func private @second(%x: {TENSOR}, %y: {TENSOR}) -> {TENSOR} {{
  %0 = "my.relu"(%x) : ({TENSOR}) -> {TENSOR}
  %1 = "my.atan"(%0, %y) : ({TENSOR}, {TENSOR}) -> {TENSOR}
  return %1 : {TENSOR}
}}
"""
PLUGIN = """\
import shardy_py as sdy

my = sdy.Dialect("my")
my.op("my.halve", rule="... -> ...", traits=[sdy.Elementwise, sdy.Pure])
my.op("my.relu", rule="... -> ...", traits=[sdy.Elementwise, sdy.Pure])
my.op("my.atan", rule="..., ... -> ...", traits=[sdy.Elementwise, sdy.Pure])


@sdy.hookimpl
def shardy_register_dialects():
    return [my]
"""


@pytest.fixture(scope="module")
def plugin() -> ModuleType:
    """Return a dialect that is not StableHLO."""
    module = ModuleType("halves")
    exec(PLUGIN, module.__dict__)
    return module


@pytest.fixture(scope="module")
def explanation(plugin: ModuleType) -> PipelineExplanation:
    """Return the explanation of two named parts with an op between them."""
    return sdy.mpmd.partition(STEP, TOPOLOGY, NAMES, plugins=[plugin]).explain()


def test_an_op_with_a_name_is_where_its_name_is(explanation: PipelineExplanation) -> None:
    """The two ops of one kind are told apart by the named computation that they are in."""
    first, second = explanation.op("my.relu")
    assert (first.meshes, first.reason) == (("m0",), 'it is part of "first"')
    assert (second.meshes, second.reason) == (("m1",), 'it is part of "second"')


def test_an_op_without_a_name_is_where_its_result_is_needed(explanation: PipelineExplanation) -> None:
    """The text says what needs it, and on which mesh its operands are."""
    (halve,) = explanation.op("halve")
    assert halve.meshes == ("m1",)
    assert halve.op.location == "-:3:8"
    assert '"second" needs it on m1' in str(halve)
    assert 'its operands can be had without a transfer on m0 ("first")' in str(halve)


def test_a_transfer_has_the_ops_at_both_ends(explanation: PipelineExplanation) -> None:
    """It names the op that makes the value, the op that uses it, and why that is on its mesh."""
    (transfer,) = explanation.transfers
    assert (transfer.source.mesh, transfer.target.mesh, transfer.bytes_per_device) == ("m0", "m1", 4 * 8 * 4)
    assert transfer.made_by == 'my.relu at -:8:8, part of "first"'
    assert transfer.used_by == ('my.halve at -:3:8, which "second" needs there',)
    assert str(explanation).splitlines()[-1] == "  0: m0 to m1, 128 B per device: tensor<4x8xf32>"


def test_what_would_remove_a_transfer_is_tried(explanation: PipelineExplanation) -> None:
    """Both parts on one mesh need no transfer; the cheapest cut, between equal sizes, changes nothing."""
    removals = explanation.removals(0)
    assert {item.change for item in removals} == {'"second" on m0', '"first" on m1'}
    assert {(item.transfers, item.sent_bytes) for item in removals} == {(0, 0)}
    assert explanation.removals(0, limit=0) == ()


def test_changes_of_the_transfer_itself_are_tried_first(plugin: ModuleType) -> None:
    """Of many pairs of parts, those of the transfer that is asked for are moved, also if few changes may be tried."""
    names, lines, functions = {}, [], []
    for number in range(3):
        for part, mesh, operand in (("first", "m0", "%x"), ("second", "m1", f"%a{number}")):
            value = f"%{'a' if part == 'first' else 'b'}{number}"
            names[f"{part}{number}"] = mesh
            lines.append(f"{value} = call @{part}{number}({operand}) : ({TENSOR}) -> {TENSOR}")
            functions.append(
                f"func.func private @{part}{number}(%x: {TENSOR}) -> {TENSOR} {{\n"
                f'%0 = "my.relu"(%x) {{number = {number} : i32}} : ({TENSOR}) -> {TENSOR}\nreturn %0 : {TENSOR}\n}}'
            )
    types = ", ".join([TENSOR] * 3)
    body = "\n".join([*lines, f"return %b0, %b1, %b2 : {types}"])
    text = "\n".join([f"func.func @main(%x: {TENSOR}) -> ({types}) {{\n{body}\n}}", *functions])
    explanation = sdy.mpmd.partition(text, TOPOLOGY, names, plugins=[plugin]).explain()
    for transfer in explanation.transfers:
        part = transfer.used_by[0][-len('"second0"') :]
        assert {item.change for item in explanation.removals(transfer.number, limit=2)} == {f"{part} on m0"}


def test_what_is_not_there_is_refused(explanation: PipelineExplanation) -> None:
    """Ops and transfers that do not exist, and programs whose source is not known."""
    with pytest.raises(OptionError, match=r"'my\.sine'"):
        explanation.op("my.sine")
    with pytest.raises(OptionError, match="there is no transfer 1"):
        explanation.removals(1)
    program = sdy.mpmd.partition("func.func @main(%x: tensor<4xf32>) { return }", TOPOLOGY, {})
    with pytest.raises(OptionError, match="only a program that partition returned"):
        sdy.mpmd.PipelineProgram(program.text, program.topology).explain()


def test_microbatches_are_one_transfer() -> None:
    """Equal transfers of two microbatches are counted, and a sum over both meshes is told as such."""
    text = f"""\
    func.func @main(%x: {TENSOR}, %y: {TENSOR}) -> {TENSOR} {{
      %0 = mpmd.call @step(%x) {{call_counter = 0 : ui32}} : ({TENSOR}) -> {TENSOR}
      %1 = mpmd.call @step(%y) {{call_counter = 1 : ui32}} : ({TENSOR}) -> {TENSOR}
      %2 = stablehlo.atan2 %0, %1 : {TENSOR}
      return %2 : {TENSOR}
    }}
    func.func private @step(%x: {TENSOR}) -> {TENSOR} {{
      %0 = mpmd.named_computation<"first"> (%x) (%a: {TENSOR}) {{
        %r = stablehlo.tanh %a : {TENSOR}
        mpmd.return %r : {TENSOR}
      }} : ({TENSOR}) -> {TENSOR}
      %1 = mpmd.named_computation<"second"> (%0) (%a: {TENSOR}) {{
        %r = stablehlo.sine %a : {TENSOR}
        mpmd.return %r : {TENSOR}
      }} : ({TENSOR}) -> {TENSOR}
      return %1 : {TENSOR}
    }}
    """
    explanation = sdy.mpmd.partition(text, TOPOLOGY, NAMES).explain()
    assert [item.count for item in explanation.transfers] == [2]
    assert explanation.op("stablehlo.tanh")[0].count == 2


def test_the_command_explains_ops_and_transfers(tmp_path: Path) -> None:
    """A plugin that is not installed is given as a file."""
    (tmp_path / "step.mlir").write_text(STEP)
    (tmp_path / "halves.py").write_text(PLUGIN)
    arguments = ["mpmd", "explain", str(tmp_path / "step.mlir"), "--plugin", str(tmp_path / "halves.py")]
    arguments += ["--mesh", "m0:x=2", "--mesh", "m1:x=2", "--assign", "first@m0", "--assign", "second@m1"]
    outcome = CliRunner().invoke(shardy, [*arguments, "--transfer", "0", "--json"])
    assert outcome.exit_code == 0, outcome.output
    assert {item["change"] for item in json.loads(outcome.output)["removals"]} == {'"second" on m0', '"first" on m1'}
    outcome = CliRunner().invoke(shardy, [*arguments, "--op", "my.halve"])
    assert f"my.halve at {tmp_path / 'step.mlir'}:3:8 runs on m1" in outcome.output
    outcome = CliRunner().invoke(shardy, [*arguments, "--op", "my.halve", "--limit", "2"])
    assert "without --transfer" in outcome.stderr
    outcome = CliRunner().invoke(shardy, [*arguments, "--mesh", "m1:x=4"])
    assert "the name is there twice" in outcome.stderr


def test_a_name_that_nothing_has_is_a_warning(tmp_path: Path, plugin: ModuleType) -> None:
    """It may be misspelt; the program, the explanation and the command say so."""
    names = {**NAMES, "secnd": "m1"}
    program = sdy.mpmd.partition(STEP, TOPOLOGY, names, plugins=[plugin])
    hints = [(warning.code, warning.hint) for warning in program.warnings]
    assert hints == [("unused-name", "did you mean second?")]
    assert program.explain().warnings == program.warnings
    assert not sdy.mpmd.partition(STEP, TOPOLOGY, NAMES, plugins=[plugin]).warnings
    (tmp_path / "halves.py").write_text(PLUGIN)
    (tmp_path / "step.mlir").write_text(STEP)
    arguments = ["mpmd", "explain", str(tmp_path / "step.mlir"), "--plugin", str(tmp_path / "halves.py")]
    for item in ("m0:x=2", "m1:x=2"):
        arguments += ["--mesh", item]
    for name, mesh in names.items():
        arguments += ["--assign", f"{name}@{mesh}"]
    outcome = CliRunner().invoke(shardy, arguments)
    assert outcome.exit_code == 0
    assert "'secnd' is assigned to the mesh 'm1'" in outcome.stderr
    data = json.loads(CliRunner().invoke(shardy, [*arguments, "--json"]).stdout)
    assert [warning["code"] for warning in data["warnings"]] == ["unused-name"]


def test_names_of_jax_and_of_tensors_are_known() -> None:
    """Marked functions have the names of computations and tensors; named tensors and nested computations count, too."""
    jax = pytest.importorskip("jax")

    @sdy.mpmd.named_computation(name="outer")
    def outer(x):  # type: ignore[no-untyped-def]
        return sdy.mpmd.named_tensor(jax.numpy.tanh(x), name="middle")

    lowered = jax.jit(lambda x: outer(x) * 2).lower(jax.numpy.ones((4, 8)))
    program = sdy.mpmd.partition(lowered, TOPOLOGY, {"outer": "m0", "middle": "m0", "nothing": "m1"})
    assert [warning.code for warning in program.warnings] == ["unused-name"]
