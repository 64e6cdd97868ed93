"""Stages, schedule and number of microbatches by cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("click", reason="the command needs click")

from click.testing import CliRunner

from shardy_py import propagate
from shardy_py.cli.app import shardy
from shardy_py.errors import OptionError, UnsupportedError
from shardy_py.mpmd import PipelinePlan, plan
from shardy_py.mpmd.stage_costs import ProgramCosts

LAYERS = 4
TENSOR = "tensor<256x256xf32>"


def chain_of_layers(layers: int = LAYERS) -> str:
    """Return a program of equal layers."""
    weights = ", ".join(f"%w{number}: {TENSOR}" for number in range(layers))
    lines, value = [], "%x"
    for number in range(layers):
        lines += [
            f"%d{number} = stablehlo.dot_general {value}, %w{number}, contracting_dims = [1] x [0] : "
            f"({TENSOR}, {TENSOR}) -> {TENSOR}",
            f"%t{number} = stablehlo.tanh %d{number} : {TENSOR}",
        ]
        value = f"%t{number}"
    body = "\n".join(lines)
    return f"func.func @main(%x: {TENSOR}, {weights}) -> {TENSOR} {{\n{body}\nreturn {value} : {TENSOR}\n}}"


@pytest.fixture(scope="module")
def pipelines() -> PipelinePlan:
    """Return the plan of four layers on two meshes."""
    return plan(chain_of_layers(), meshes=2, microbatches=[4, 16], machine="h100-8")


def test_equal_layers_are_cut_into_equal_stages(pipelines: PipelinePlan) -> None:
    """Each of two stages has two of four equal layers, and sends one tensor."""
    cuts = next(item for item in pipelines.candidates if item.chunks == 1).cuts
    assert [(cut.first, cut.end) for cut in cuts] == [(0, 4), (4, 8)]
    assert [cut.sent_bytes for cut in cuts] == [256 * 256 * 4, 0]
    assert cuts[0].argument_bytes == 3 * 256 * 256 * 4
    assert cuts[0].seconds == pytest.approx(cuts[1].seconds)


def test_the_best_comes_first(pipelines: PipelinePlan) -> None:
    """Candidates are sorted by the time of a microbatch, and the text says what the next best costs."""
    times = [item.seconds_per_microbatch for item in pipelines.candidates]
    assert times == sorted(times)
    assert pipelines.best.microbatches == 16
    other = pipelines.next_best
    assert other is not None
    assert f"next best: {other.schedule}" in str(pipelines)


def test_a_budget_puts_what_does_not_fit_last(pipelines: PipelinePlan) -> None:
    """With room for a few microbatches, GPipe does not fit, as it holds all of them."""
    largest = max(item.peak_bytes for item in pipelines.candidates)
    limited = plan(chain_of_layers(), meshes=2, microbatches=16, machine="h100-8", budget_memory=largest - 1)
    assert [item.schedule for item in limited.candidates if not item.fits] == ["GPipe"]
    assert limited.candidates[-1].schedule == "GPipe"
    nothing = plan(chain_of_layers(), meshes=2, microbatches=16, machine="h100-8", budget_memory=1)
    with pytest.raises(UnsupportedError, match="no schedule fits"):
        str(nothing)


def test_the_only_function_may_have_any_name() -> None:
    """As for propagation and costs, it is the main function."""
    options = {"meshes": 2, "microbatches": 4, "machine": "h100-8"}
    assert str(plan(chain_of_layers(1).replace("@main", "@layers"), **options)) == str(
        plan(chain_of_layers(1), **options)
    )


def test_more_stages_than_ops_are_refused() -> None:
    """A program with two ops has no three stages."""
    with pytest.raises(OptionError, match="cannot be cut into 3 stages"):
        plan(chain_of_layers(1), meshes=3, microbatches=4, machine="h100-8")


def test_planned_shardings_are_tried_beside_the_given_ones() -> None:
    """Without shardings each device does all the work; with planned ones each stage takes less time."""
    options = {"mesh": {"data": 2}, "meshes": 2, "microbatches": 8, "machine": "h100-8"}
    pipeline = plan(chain_of_layers(2).replace("256", "2048"), plan_shardings=True, **options)
    by_shardings = {
        word: [item for item in pipeline.candidates if item.shardings == word] for word in ("given", "planned")
    }
    given, planned = by_shardings.values()
    assert len(given) == len(planned)
    assert pipeline.best.shardings == "planned"
    assert min(item.seconds for item in planned) < 0.7 * min(item.seconds for item in given)
    assert any("data" in spec for spec in pipeline.specs.values())
    assert "arguments in one stage's mesh:\n  arg0: P(" in str(pipeline)
    with pytest.raises(OptionError, match="the shardings of a result are fixed"):
        plan(propagate(chain_of_layers(2)), plan_shardings=True, meshes=2, microbatches=8, machine="h100-8")


def test_ops_of_one_line_have_costs_of_their_own() -> None:
    """Two layers that come from one function, on the same lines, are two stages of equal time."""
    text = f"""\
    func.func @main(%x: {TENSOR}, %w: {TENSOR}) -> {TENSOR} {{
      %0 = call @layer(%x, %w) : ({TENSOR}, {TENSOR}) -> {TENSOR}
      %1 = call @layer(%0, %w) : ({TENSOR}, {TENSOR}) -> {TENSOR}
      return %1 : {TENSOR}
    }}
    func.func private @layer(%x: {TENSOR}, %w: {TENSOR}) -> {TENSOR} {{
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({TENSOR}, {TENSOR}) -> {TENSOR}
      %1 = stablehlo.tanh %0 : {TENSOR}
      return %1 : {TENSOR}
    }}""".replace("256", "1024")
    cuts = plan(text, meshes=2, microbatches=8, machine="h100-8").best.cuts
    assert [(cut.first, cut.end) for cut in cuts] == [(0, 2), (2, 4)]
    assert cuts[0].seconds == pytest.approx(cuts[1].seconds)
    product, tanh = (
        cut.seconds for cut in plan(text, meshes=4, microbatches=8, machine="h100-8").candidates[-1].cuts[:2]
    )
    assert product > 5 * tanh


def test_the_time_of_the_program_is_that_of_its_stages() -> None:
    """What the partitioner adds, such as the gathering of a result, is in the time of some stage."""
    text = f'sdy.mesh @mesh = <["x"=2]>\n{chain_of_layers(2)}'.replace(
        f"-> {TENSOR} {{", f"-> ({TENSOR} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}}) {{"
    ).replace(f"%x: {TENSOR}", f'%x: {TENSOR} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}')
    result = propagate(text)
    cost = result.cost(machine="h100-8")
    total = sum(item.seconds or 0.0 for item in cost.ops) + sum(
        (item.seconds or 0) * item.runs for item in cost.transfers
    )
    costs = ProgramCosts.of(result, "h100-8")
    assert cost.transfers
    assert sum(costs.seconds) == pytest.approx(total)
    assert result.program.functions["main"].location == propagate(text).program.functions["main"].location


def test_the_command_takes_a_plugin_that_is_not_installed(tmp_path: Path) -> None:
    """The program is propagated with the rules of the file, and priced."""
    (tmp_path / "halves.py").write_text(
        "import shardy_py as sdy\n"
        'my = sdy.Dialect("my")\n'
        'my.op("my.halve", rule="i j -> i j", traits=[sdy.Pure], local=sdy.local_by_types)\n'
        "@sdy.hookimpl\ndef shardy_register_dialects():\n    return [my]\n"
    )
    (tmp_path / "halves.mlir").write_text(
        f"func.func @main(%x: {TENSOR}) -> {TENSOR} {{\n"
        f'%0 = "my.halve"(%x) : ({TENSOR}) -> {TENSOR}\n%1 = "my.halve"(%0) : ({TENSOR}) -> {TENSOR}\n'
        f"return %1 : {TENSOR}\n}}"
    )
    arguments = ["mpmd", "plan", str(tmp_path / "halves.mlir"), "--plugin", str(tmp_path / "halves.py")]
    arguments += ["--mesh", "x=2", "--in-sharding", "arg0=x,None", "--meshes", "2", "--microbatches", "4", "--json"]
    outcome = CliRunner().invoke(shardy, [*arguments, "--machine", "h100-8"])
    assert outcome.exit_code == 0, outcome.output
    assert [stage["sent_bytes"] for stage in json.loads(outcome.output)["stages"]] == [256 * 256 * 2, 0]


def test_a_long_program_with_one_long_op_is_cut() -> None:
    """There are as many stages as asked for, also where all time but that of one op is nearly nothing."""
    sines = "\n".join(f"%s{number + 1} = stablehlo.sine %s{number} : tensor<f32>" for number in range(450))
    types = f"({TENSOR}, tensor<f32>)"
    text = (
        f"func.func @main(%a: {TENSOR}, %s0: tensor<f32>) -> {types} {{\n"
        f"%d = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : ({TENSOR}, {TENSOR}) -> {TENSOR}\n"
        f"{sines}\nreturn %d, %s450 : {TENSOR}, tensor<f32>\n}}"
    ).replace("256x256", "4096x4096")
    pipeline = plan(text, meshes=4, microbatches=8, machine="h100-8")
    assert {len(item.cuts) for item in pipeline.candidates} == {4, 8}


def test_the_command_prints_json(tmp_path: Path) -> None:
    """The command says the same as the function, as JSON."""
    path = tmp_path / "layers.mlir"
    path.write_text(chain_of_layers(2))
    arguments = ["mpmd", "plan", str(path), "--meshes", "2", "--microbatches", "4", "--machine", "h100-8", "--json"]
    outcome = CliRunner().invoke(shardy, arguments)
    assert outcome.exit_code == 0, outcome.output
    plan_data = json.loads(outcome.output)
    assert [stage["end"] for stage in plan_data["stages"]][-1] == 4
    assert {row["microbatches"] for row in plan_data["candidates"]} == {4}
