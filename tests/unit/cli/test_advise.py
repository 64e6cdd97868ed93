"""``shardy advise``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardy_py.cost.commands.run_advise import parse_size
from shardy_py.errors import OptionError
from tests.unit.cost.programs import LAYER


@pytest.fixture
def layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with a program whose product is constrained best by rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layer.mlir").write_text(LAYER)
    return "layer.mlir"


def test_each_constraint_is_printed_as_jax_and_as_mlir(layer, shardy):
    """The line to paste, where it goes, and the op of Shardy are there, with what they save."""
    done = shardy("advise", layer, "--machine", "cpu-8", "--minimise", "bytes")
    assert done.exit_code == 0
    assert 'x = jax.lax.with_sharding_constraint(x, P("a", None))   # behind layer.mlir:4:8' in done.stdout
    assert 'sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x4xf32>' in done.stdout
    assert "as it is" in done.stdout
    assert "with 1" in done.stdout


def test_the_written_program_needs_no_more_advice(layer, shardy):
    """With the constraints written into it, what was saved is the cost of the program as it is."""
    first = json.loads(shardy("advise", layer, "--json", "-o", "out.mlir").stdout)
    second = json.loads(shardy("advise", "out.mlir", "--json").stdout)
    assert first["constraints"][0]["jax"] == 'x = jax.lax.with_sharding_constraint(x, P("a", None))'
    assert second["before"] == first["after"]
    assert second["constraints"] == []


@pytest.mark.parametrize(("text", "size"), [("16GiB", 16 * 2**30), ("500MB", 5e8), ("1e9", 1e9), ("2 K", 2000.0)])
def test_sizes_have_units(text, size):
    """Binary and decimal units are read; without one a size is in bytes."""
    assert parse_size(text) == size


def test_a_size_of_another_form_is_refused():
    """The message shows a size that is valid."""
    with pytest.raises(OptionError, match="16GiB"):
        parse_size("much")


def test_layouts_of_inputs_are_printed_with_what_they_cost(layer, shardy):
    """The plan and known layouts have a row each, and the shardings of their arguments as JAX writes them."""
    pytest.importorskip("highspy")
    done = shardy("advise", layer, "--inputs", "--machine", "cpu-8", "-o", "out.mlir")
    assert done.exit_code == 0, done.stderr
    assert "data parallel" in done.stdout
    assert 'P("a", None)' in done.stdout
    assert "sdy.sharding" in Path("out.mlir").read_text()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "without --machine"),
        (("--machine", "cpu-8", "--trials", "3"), "--trials has no effect together with --inputs"),
        (("--machine", "cpu-8", "--minimise", "bytes"), "planned for time or memory"),
        (("--machine", "cpu-8", "--budget-memory", "10B"), "which is "),
    ],
)
def test_what_no_plan_can_have_is_refused(layer, shardy, options, problem):
    """A plan needs a machine, is for time or memory, and meets the budget, or there is an error."""
    pytest.importorskip("highspy")
    done = shardy("advise", layer, "--inputs", *options)
    assert done.exit_code == 2
    assert problem in " ".join(done.stderr.split())
