"""``shardy compare-jit``, and ``--against-jit``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

from shardy_py.support.processes.child import Child
from shardy_py.support.processes.serve import ShowStep

MODULE = """module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
    %0 = chlo.square %arg0 : tensor<8x4xf32> -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
"""
PROGRAM = """import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P


def program():
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
    shape = jax.ShapeDtypeStruct((8, 4), "float32", sharding=NamedSharding(mesh, P("x")))
    return jax.jit(jnp.square).lower(shape)


number = 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of all tests, where one process answers what commands ask: each start of JAX takes seconds."""
    folder = tmp_path_factory.mktemp("compare_jit")
    (folder / "square.mlir").write_text(MODULE)
    (folder / "square_program.py").write_text(PROGRAM)
    children: dict[str, Child] = {}

    def ask(worker: str, request: bytes, *, seconds: float, show: ShowStep | None = None) -> bytes:
        child = children.get(worker) or children.setdefault(worker, Child(worker))
        return child.ask(request, seconds=seconds, show=show)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shardy_py.cli.child.ask_once", ask)
        yield folder
    for child in children.values():
        child.close()


@pytest.fixture
def file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module whose square Shardy's passes know no rule for, in the folder of the process."""
    monkeypatch.chdir(folder)
    return "square.mlir"


def test_a_module(file: str, shardy: Any) -> None:
    """As it is, it differs from the first op on; like jit, it is equal; JSON has the same."""
    done = shardy("compare-jit", file)
    assert done.exit_code == 1
    assert done.stdout.startswith("different: propagated like passes; compiled by jax.jit, jaxlib ")
    assert "square.mlir:4:10: chlo.square : tensor<8x4xf32>\n    only here, replicated" in done.stdout
    assert "like='jit'" in done.stdout
    done = shardy("compare-jit", file, "--like", "jit", "--json")
    data = json.loads(done.stdout)
    assert (done.exit_code, data["equal"], data["ops"], data["equal_ops"], data["like"]) == (0, True, 1, 1, "jit")


def test_a_program_of_python(file: str, shardy: Any) -> None:
    """A function of a module that returns the program is called; what is none is an error."""
    done = shardy("compare-jit", "square_program:program", "--devices", "2")
    assert (done.exit_code, done.stdout.splitlines()[1]) == (0, "  ops         1 of 1 equal")
    for name, message in (("number", "is a int, not a program"), ("missing", "cannot be imported")):
        done = shardy("compare-jit", f"square_program:{name}")
        assert done.exit_code == 2
        assert message in done.stderr


def test_costs_against_jit(file: str, shardy: Any) -> None:
    """The costs of both programs are printed, with the first op that differs."""
    done = shardy("cost", file, "--against-jit")
    assert done.exit_code == 0
    assert done.stdout.startswith("Against jax.jit\n  bytes sent      here ")
    assert "chlo.square" in done.stdout
    done = shardy("compare", file, "--schedule", "default", "--jobs", "1", "--against-jit")
    assert "Against jax.jit" in done.stdout
