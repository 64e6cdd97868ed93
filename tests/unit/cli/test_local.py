"""``shardy local``, and the commands that read local programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="running needs the extra 'jax'")
numpy = pytest.importorskip("numpy")

PROGRAM = """\
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<8x16xf32>
  %1 = stablehlo.add %x, %0 : tensor<8x16xf32>
  %2 = stablehlo.dot_general %1, %x, contracting_dims = [1] x [1]
      : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    """A file with a program."""
    path = tmp_path / "in.mlir"
    path.write_text(PROGRAM)
    return str(path)


def test_the_module_of_each_device_is_written(program: str, tmp_path: Path, shardy: Any) -> None:
    """The file has the types of shards and the number of the device; that of one device has no number in it."""
    out, single = tmp_path / "out.mlir", tmp_path / "one.mlir"
    done = shardy("local", program, "-o", str(out))
    assert done.exit_code == 0, done.output
    assert "tensor<4x8xf32>" in out.read_text()
    assert "partition_id" in out.read_text()
    assert "collectives:" in done.stderr
    assert not done.stdout
    assert shardy("local", program, "--device", "3", "-q", "-o", str(single)).exit_code == 0
    assert "partition_id" not in single.read_text()


def test_shards_and_collectives_are_data(program: str, shardy: Any) -> None:
    """JSON has what the table shows, and the groups of the collectives."""
    data = json.loads(shardy("local", program, "--json").stdout)
    assert data["devices"] == 4
    assert data["arguments"][0]["shard"] == [4, 8]
    assert data["collectives"][-1]["groups"]
    assert not data["gathered"]


def test_runs_are_compared_with_one_device(program: str, tmp_path: Path, shardy: Any) -> None:
    """Global arrays go in and come out, and are those of one device."""
    x = numpy.random.default_rng(0).normal(size=(8, 16)).astype("float32")
    numpy.savez(tmp_path / "in.npz", arg0=x)
    done = shardy(
        *("local", program, "--run", "--compare", "--json", "--inputs", str(tmp_path / "in.npz")),
        *("--outputs", str(tmp_path / "out.npz")),
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["is_within"]
    actual = numpy.load(tmp_path / "out.npz")["result0"]
    numpy.testing.assert_allclose(actual, (x + numpy.arange(8)[:, None]) @ x.T, rtol=1e-4)


def test_strict_programs_gather_nothing(tmp_path: Path, shardy: Any) -> None:
    """An op that may hold the size of a sharded dimension is gathered, and an error with ``--strict``."""
    path = tmp_path / "in.mlir"
    path.write_text("""sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
      %0 = stablehlo.custom_call @own(%x) {mhlo.backend_config = {size = 8 : i64},
        sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}, custom>}
          : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }""")
    done = shardy("local", str(path), "--json")
    assert [item["op"] for item in json.loads(done.stdout)["gathered"]] == ["stablehlo.custom_call"]
    assert "warning: 'stablehlo.custom_call' op" in done.stderr
    done = shardy("local", str(path), "--strict")
    assert done.exit_code == 2
    assert not done.stdout
    assert "error: 'stablehlo.custom_call' op" in done.stderr


def test_costs_and_kernels_read_local_programs(program: str, shardy: Any) -> None:
    """The cost counts the collectives of the local program; a kernel works on shards."""
    data = json.loads(shardy("cost", program, "--machine", "cpu-8", "--local", "--json").stdout)
    assert data["devices"] == 4
    pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
    done = shardy("emit", program, "--device", "1", "--list")
    assert done.exit_code == 0, done.output
    assert "tensor<4x8xf32>" in done.stdout


def test_options_that_exclude_each_other(program: str, shardy: Any) -> None:
    """A run writes no module."""
    done = shardy("local", program, "--run", "--device", "1")
    assert done.exit_code == 2
    assert "exclude each other" in done.stderr
