"""The commands on ``.pt2`` files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from click import testing

import shardy_py as sdy
from shardy_py.ir.graph.printing import print_program
from shardy_py.torch.frontend import TORCH
from tests.torch.models import exported_decoder
from tests.torch.test_import import Flow, Scan, export

pytestmark = pytest.mark.torch
OPTIONS = (
    *("--mesh", "data=2,model=2"),
    *("--in-sharding", "*.q_proj.weight=model,None", "--in-sharding", "tokens=data,None"),
)
Run = Callable[..., testing.Result]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of the decoder."""
    path = tmp_path_factory.mktemp("model") / "model.pt2"
    torch.export.save(exported_decoder(), path)
    return str(path)


@pytest.fixture
def shardy() -> Run:
    """Runs a command on the file, with a mesh and shardings by globs."""
    from shardy_py.cli.app import shardy as command

    def run(name: str, file: str, *arguments: str) -> testing.Result:
        done = testing.CliRunner().invoke(command, [name, file, *OPTIONS, *arguments], prog_name="shardy")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return run


def test_propagate_writes_a_plan(model: str, shardy: Run, tmp_path: Path) -> None:
    """The plan has the styles along each dimension of the mesh, and the placements of all parameters."""
    done = shardy("propagate", model, "--plan", str(tmp_path / "plan.json"), "-q")
    assert done.exit_code == 0
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["plans"]["model"]["layers.1.self_attn.o_proj"] == {"style": "rowwise"}
    assert list(plan["plans"]) == ["model"]
    assert plan["placements"]["layers.0.self_attn.k_proj.weight"] == ["Replicate()", "Shard(0)"]
    assert "tokens" not in plan["placements"]
    assert plan["warnings"] == []


def test_other_programs_have_no_plan(shardy: Run, tmp_path: Path) -> None:
    """The error says that the program does not come from PyTorch; nothing is written."""
    module = tmp_path / "in.mlir"
    module.write_text("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }")
    from shardy_py.cli.app import shardy as command

    done = testing.CliRunner().invoke(command, ["propagate", str(module), "--plan", str(tmp_path / "plan.json")])
    assert done.exit_code != 0
    assert "does not come from PyTorch" in done.stderr
    assert not (tmp_path / "plan.json").exists()


def test_explain_says_names_and_lines(model: str, shardy: Run) -> None:
    """Values are called by parameters and nodes, ops by the line of the model."""
    done = shardy("explain", model, "--value", "layers.0.self_attn.o_proj.weight", "--dim", "1")
    assert "comes from function argument layers.0.self_attn.q_proj.weight" in done.stdout
    assert "aten.linear.default linear_3 at models.py:" in done.stdout
    listed = shardy("explain", model, "--reshards").stdout
    assert "sdy.all_reduce of linear_3" in listed


def test_an_unknown_value_is_an_error_with_the_names(model: str, shardy: Run) -> None:
    """The hint lists the names of parameters."""
    done = shardy("explain", model, "--value", "o_proj")
    assert done.exit_code != 0
    assert "layers.0.self_attn.o_proj.weight" in done.stderr


def test_cost_names_lines_of_the_model(model: str, shardy: Run) -> None:
    """Two reductions, at the lines of the model."""
    done = shardy("cost", model, "--machine", "cpu-8")
    assert "all_reduce" in done.stdout
    assert "models.py:" in done.stdout


def test_compare_is_the_same_in_other_processes(model: str, shardy: Run) -> None:
    """Processes get the program without its exported program, and find the same costs."""
    tables = [
        json.loads(shardy("compare", model, "--random", "1", "--jobs", jobs, "--json", "-").stdout) for jobs in "12"
    ]
    assert tables[0] == tables[1]


def test_a_file_runs_on_simulated_devices(model: str, shardy: Run, tmp_path: Path) -> None:
    """The results are those of the exported program, and go to a file of numpy."""
    numpy = pytest.importorskip("numpy")
    out = tmp_path / "out.npz"
    done = shardy("run", model, "--compare", "--json", "--outputs", str(out))
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["devices"], report["compared_with"]) == (4, "the exported program")
    assert all(line["difference"]["relative"] < 1e-5 and line["largest"] > 0.01 for line in report["results"])
    assert numpy.load(out)["result0"].shape == (4, 8, 32)


@pytest.mark.parametrize("option", [("--platform", "gpu"), ("--devices", "2"), ("--partitioner", "xla")])
def test_other_devices_are_refused(option: tuple[str, str]) -> None:
    """The error names the option, and what runs on real devices."""
    from shardy_py.jax.commands.run_worker import _check_simulated

    request: Any = SimpleNamespace(
        **{"platform": "cpu", "devices": None, "partitioner": None, option[0].removeprefix("--"): option[1]}
    )
    with pytest.raises(sdy.OptionError, match=f"{option[0]} has no effect"):
        _check_simulated(request, "PyTorch")


def test_a_local_program_says_how_it_runs(model: str, shardy: Run) -> None:
    """The error names the command that runs it."""
    done = shardy("local", model, "--run")
    assert done.exit_code != 0
    assert "shardy run FILE" in done.stderr


def test_search_and_explore(model: str, shardy: Run, tmp_path: Path) -> None:
    """A search ends with a schedule; a page has the names of parameters."""
    assert "[[level]]" in shardy("search", model, "--budget", "2").stdout
    page = tmp_path / "page.html"
    assert shardy("explore", model, "-o", str(page), "--proposals", "0").exit_code == 0
    assert page.stat().st_size > 10_000


def test_rules_of_pointwise_ops_are_listed(model: str) -> None:
    """Ops that PyTorch tags as pointwise have a rule there, too."""
    from shardy_py.cli.app import shardy as command

    done = testing.CliRunner().invoke(command, ["rules", model])
    assert "aten.silu.default" in done.stdout
    assert "no rule" not in done.stdout


@pytest.mark.parametrize("name", ["decoder", "flow", "scan"])
def test_a_packed_program_is_the_program(name: str) -> None:
    """Text, names, places and modules are the same after a way through bytes; equal programs have equal bytes."""
    make: dict[str, Callable[[], Any]] = {
        "decoder": exported_decoder,
        "flow": lambda: export(Flow(), torch.ones(4, 4)),
        "scan": lambda: export(Scan(), torch.ones(3, 6, 4), torch.ones(4, 4)),
    }
    exported = make[name]()
    data = TORCH.to_bytes(exported)
    imported, read = TORCH.import_program(exported), TORCH.import_program(TORCH.from_bytes(data))
    assert print_program(read) == print_program(imported)
    assert [op.location for op in read.walk()] == [op.location for op in imported.walk()]
    for first, second in zip(imported.walk(), read.walk(), strict=True):
        assert imported.origin.module_paths.get(first.id) == read.origin.module_paths.get(second.id)
        for left, right in zip(first.results, second.results, strict=True):
            assert imported.origin.node_names.get(left.id) == read.origin.node_names.get(right.id)
    assert TORCH.to_bytes(read) == data
