"""``shardy emit-opt``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from tests.unit.kernels.opt.modules import LLVM, TWO_FAULTS

SUM = """func.func @main(%x: tensor<32xf32>, %o: tensor<32xf32>) -> tensor<32xf32> {
  %t = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
  %e = tensor.extract %x[%t] : tensor<32xf32>
  %s = arith.addf %e, %e : f32
  %r = tensor.insert %s into %o[%t] : tensor<32xf32>
  return %r : tensor<32xf32>
}"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    """The path of a right module."""
    path = tmp_path / "sum.mlir"
    path.write_text(SUM)
    return str(path)


def test_passes_and_stages(file: str, tmp_path: Path, shardy: Any) -> None:
    """The module behind passes is printed in either form; every stage is a file."""
    done = shardy("emit-opt", file, "--pass-pipeline", "kernel-pipeline{until=lower-tensors}", "--generic")
    assert done.exit_code == 0
    assert '"llvm.store"' in done.stdout
    stages = tmp_path / "stages"
    assert shardy("emit-opt", file, "--pass-pipeline", "cse,inline", "--stages", str(stages)).stdout == ""
    assert sorted(path.name for path in stages.iterdir()) == ["00.cse.mlir", "01.inline.mlir", "initial.mlir"]
    assert shardy("emit-opt", str(stages / "initial.mlir")).stdout == (stages / "initial.mlir").read_text()


def test_runs_and_comparisons(file: str, tmp_path: Path, shardy: Any) -> None:
    """What a module computes, and that its stages compute the same."""
    done = shardy("emit-opt", file, "--run", "--json")
    (row,) = json.loads(done.stdout)["results"]
    assert (row["name"], row["shape"]) == ("argument 1", [32])
    done = shardy("emit-opt", file, "--pass-pipeline", "kernel-pipeline", "--compare", "initial", "lower-tensors")
    assert (done.exit_code, done.stdout) == (0, "initial and 24.lower-tensors compute the same\n")
    done = shardy("emit-opt", file, "--pass-pipeline", "cse,inline", "--bisect")
    assert (done.exit_code, done.stdout) == (0, "all 3 stages compute the same\n")
    assert "--pass-pipeline kernel-pipeline gives passes" in shardy("emit-opt", file, "--bisect").stdout
    done = shardy("emit-opt", file, "--reduce")
    assert done.exit_code == 2
    assert "no stage of the module is wrong" in done.stderr
    llvm = tmp_path / "llvm.mlir"
    llvm.write_text(LLVM)
    assert shardy("emit-opt", str(llvm), "--sanitize").stdout == "no faults\n"


def test_a_module_with_faults(tmp_path: Path, shardy: Any) -> None:
    """Each fault has its line; the exit code is 1; the module is reduced to what the first one needs."""
    path = tmp_path / "faults.mlir"
    path.write_text(TWO_FAULTS)
    done = shardy("emit-opt", str(path), "--sanitize")
    assert done.exit_code == 1
    assert f"{path}:6: error: 'tensor.extract' op: thread (31, 0, 0)" in done.stdout
    done = shardy("emit-opt", str(path), "--bisect")
    assert done.exit_code == 1
    assert done.stdout.startswith("wrong before the first pass [out-of-bounds]")
    done = shardy("emit-opt", str(path), "--reduce")
    assert done.exit_code == 0
    assert "allocate_shared" not in done.stdout


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--run", "--sanitize"), "--run and --sanitize exclude each other"),
        (("--seed", "1"), "--seed"),
        (("--run", "--generic"), "--generic"),
        (("--run", "--threads", "0"), "'0' is not a size of a grid"),
        (("--pass-pipeline", "nothing"), "there is no pass 'nothing'"),
    ],
)
def test_options_that_do_not_fit(options: tuple[str, ...], reason: str, file: str, shardy: Any) -> None:
    """They are errors that name the option."""
    done = shardy("emit-opt", file, *options)
    assert done.exit_code == 2
    assert reason in done.stderr
