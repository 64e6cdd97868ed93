"""``shardy run``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="running needs the extra 'jax'")
numpy = pytest.importorskip("numpy")

from shardy_py.errors import UnsupportedError  # noqa: E402
from shardy_py.jax.commands import run_run as command  # noqa: E402
from shardy_py.jax.commands.run_run import RunAnswer  # noqa: E402
from shardy_py.jax.deviations import Deviation  # noqa: E402
from shardy_py.jax.run_report import ResultLine, RunReport  # noqa: E402

pytestmark = pytest.mark.slow

PROGRAM = """\
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %w: tensor<16x4xbf16>)
    -> (tensor<8x4xf32>, tensor<16x4xbf16> {jax.result_info = "w"}) {
  %0 = stablehlo.convert %w : (tensor<16x4xbf16>) -> tensor<16x4xf32>
  %1 = call @dot(%x, %0) : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"b"}]> : tensor<8x4xf32>
  return %2, %w : tensor<8x4xf32>, tensor<16x4xbf16>
}
func.func private @dot(%x: tensor<8x16xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    """A file with a program of two results."""
    path = tmp_path / "in.mlir"
    path.write_text(PROGRAM)
    return str(path)


def test_a_program_runs_and_agrees_with_one_device(program: str, tmp_path: Path, shardy: Any) -> None:
    """Inputs from a file go in, results come out, and what they are is what numpy computes."""
    x = numpy.linspace(-1, 1, 128, dtype="float32").reshape(8, 16)
    w = numpy.eye(16, 4, dtype="float32")
    # The upper half of a float's bits is a bfloat16; numpy alone saves that as raw bytes.
    raw = (w.view("uint32") >> 16).astype("uint16").view("V2")
    numpy.savez(tmp_path / "inputs.npz", arg0=x, arg1=raw)
    outputs = tmp_path / "outputs.npz"
    done = shardy(
        *("run", program, "--compare", "--json", "--inline-calls"),
        *("--inputs", str(tmp_path / "inputs.npz"), "--outputs", str(outputs)),
    )
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["devices"], report["platform"], report["is_within"]) == (4, "cpu", True)
    assert report["compared_with"] == "one device, without shardings"
    assert [item["name"] for item in report["results"]] == ["result0", "w"]
    assert [item["type"] for item in report["results"]] == ["float32[8,4]", "bfloat16[16,4]"]
    assert report["results"][0]["sharding"] == "(None, 'b')"
    assert all(item["difference"]["is_within"] for item in report["results"])
    assert numpy.allclose(numpy.load(outputs)["result0"], x @ w)


def test_too_few_devices_are_an_error(program: str, shardy: Any) -> None:
    """An error of the other process is a message here."""
    done = shardy("run", program, "--devices", "2")
    assert done.exit_code == 2
    assert 'the mesh <["a"=2, "b"=2]> has 4 devices, JAX has 2 [too-few-devices]' in done.stderr


def test_a_platform_that_jax_does_not_have_is_an_error(program: str, shardy: Any) -> None:
    """The hint names the option."""
    done = shardy("run", program, "--platform", "abacus")
    assert done.exit_code == 2
    assert "JAX has no devices of the platform 'abacus': " in done.stderr
    assert "hint: give --platform cpu" in done.stderr


def test_manual_computations_are_compared_on_the_same_devices(tmp_path: Path, shardy: Any) -> None:
    """What is written for one device of several keeps its shardings, and the report says so."""
    path = tmp_path / "manual.mlir"
    path.write_text("""\
sdy.mesh @mesh = <["a"=4]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"}
      (%y: tensor<2xf32>) {
    %2 = "stablehlo.all_reduce"(%y) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %3 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    sdy.return %2 : tensor<2xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
""")
    done = shardy("run", str(path), "--compare")
    assert done.exit_code == 0, done.output
    assert "Ran on 4 host devices" in done.stdout
    assert "with nothing sharded but the manual computations: the results are the same" in done.stdout


def _answer(relative: float) -> RunAnswer:
    difference = Deviation(relative, relative, 0, 1e-3)
    line = ResultLine("loss", "float32[]", "", 1.0, 0, difference)
    return RunAnswer(RunReport(2, "cpu", (line,), 0.5, "one device, without shardings"))


@pytest.mark.parametrize(
    ("relative", "code", "words"), [(1e-4, 0, "the results are the same"), (0.5, 1, "1 of 1 results differ")]
)
def test_the_exit_code_tells_whether_results_differ(
    relative: float, code: int, words: str, program: str, shardy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the tolerance the command ends with 1, and marks the result."""
    monkeypatch.setattr(command, "run_in_child", lambda request, timeout, show: _answer(relative))
    done = shardy("run", program, "--compare")
    assert done.exit_code == code
    assert f"compared with one device, without shardings: {words}" in done.stdout
    assert (" differs " in done.stdout) == bool(code)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("import os; os.abort()", r"XLA ended without a result: the process died \(SIGABRT\)"),
        ("import time; time.sleep(60)", "did not end within 1 seconds"),
    ],
)
def test_a_process_that_does_not_answer_is_a_message(
    body: str, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """XLA may end the process, or wait for ever; neither ends ours."""
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\nexec '{command.sys.executable}' -c '{body}'\n")
    script.chmod(0o755)
    monkeypatch.setattr(command.sys, "executable", str(script))
    with pytest.raises(UnsupportedError, match=expected):
        command.run_in_child(None, timeout=1)  # type: ignore[arg-type]


def test_missing_inputs_are_an_error(program: str, shardy: Any) -> None:
    """A file of inputs that is not there is found before anything runs."""
    done = shardy("run", program, "--inputs", "nothing.npz")
    assert done.exit_code == 2
    assert "--inputs nothing.npz: there is no such file [no-inputs]" in done.stderr
    done = shardy("run", program, "--inputs", ".")
    assert (done.exit_code, "--inputs .: this is no file [no-inputs]" in done.stderr) == (2, True)


def test_a_generator_without_a_key_is_noted(tmp_path: Path, shardy: Any) -> None:
    """Numbers that no run repeats differ, and the report says why."""
    path = tmp_path / "random.mlir"
    path.write_text("""\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %low = stablehlo.constant dense<0.0> : tensor<f32>
  %high = stablehlo.constant dense<1.0> : tensor<f32>
  %shape = stablehlo.constant dense<4> : tensor<1xi64>
  %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM
      : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  %1 = stablehlo.add %0, %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}
""")
    done = shardy("run", str(path), "--compare")
    assert done.exit_code == 1
    assert "random.mlir:5:8 gives other numbers in every run: what depends on it cannot be compared" in " ".join(
        done.stdout.split()
    )


OWN_OP = """\
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x4xf32> {
  %0 = "toy.double"(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
OWN_PLUGIN = """\
import shardy_py as sdy

toy = sdy.Dialect("toy")
toy.op("toy.double", traits=[sdy.Elementwise])


@sdy.hookimpl
def shardy_register_dialects():
    return [toy]
"""


def test_an_op_of_a_plugin_runs_by_its_function(tmp_path: Path, shardy: Any) -> None:
    """With functions in the plugin the program runs on devices of numpy; without, the error names the op."""
    program, plugin = tmp_path / "own.mlir", tmp_path / "toy_run.py"
    program.write_text(OWN_OP)
    plugin.write_text(OWN_PLUGIN)
    refused = shardy("run", str(program), "--plugin", str(plugin))
    assert refused.exit_code == 2
    assert "it has ops of other dialects, toy.double [no-xla-ops]" in refused.stderr
    plugin.write_text(OWN_PLUGIN + '\n\nFUNCTIONS = {"toy.double": lambda x: 2 * x}\n')
    done = shardy("run", str(program), "--plugin", str(plugin), "--compare", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["devices"], report["platform"], report["is_within"]) == (2, "numpy", True)


def test_a_function_of_a_plugin_that_raises(tmp_path: Path, shardy: Any) -> None:
    """The error names the op, its location, the exception and the line of the plugin."""
    program, plugin = tmp_path / "own.mlir", tmp_path / "toy_raises.py"
    program.write_text(OWN_OP)
    plugin.write_text(OWN_PLUGIN + '\n\ndef double(x):\n    raise ValueError("no doubles")\n\n\n')
    line = len(plugin.read_text().rstrip().splitlines())
    plugin.write_text(plugin.read_text() + 'FUNCTIONS = {"toy.double": double}\n')
    done = shardy("run", str(program), "--plugin", str(plugin))
    assert done.exit_code == 2
    shown = " ".join(done.stderr.split())
    assert "own.mlir:3:8: error: 'toy.double' op: its function raises ValueError: no doubles" in shown
    assert f"toy_raises.py:{line}" in shown
    assert "XLA" not in shown


def test_ops_of_an_installed_plugin_run_by_its_functions(shardy, tmp_path):
    """The bundled plugin for TOSA has functions of numpy, so that its programs run, constants included."""
    program = tmp_path / "tosa.mlir"
    program.write_text("""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<4x1xf32> {
  %c = "tosa.const"() <{values = dense<2.0> : tensor<1x1xf32>}> : () -> tensor<1x1xf32>
  %0 = tosa.add %x, %c : (tensor<4x8xf32>, tensor<1x1xf32>) -> tensor<4x8xf32>
  %1 = tosa.reduce_sum %0 {axis = 1 : i32} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %1 : tensor<4x1xf32>
}
""")
    done = shardy("run", str(program), "--compare", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["devices"], report["platform"], report["is_within"]) == (2, "numpy", True)
