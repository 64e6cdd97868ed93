"""``shardy explain`` and ``shardy explore``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.explain.explore.programs import TWO_LAYERS

Shardy = Callable[..., Any]


@pytest.fixture
def conflicting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with a product whose operands want the same axis, in the current directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dot.mlir").write_text(
        """\
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                %w: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
    )
    return "dot.mlir"


def test_a_value_is_explained(shardy: Shardy, conflicting: str) -> None:
    """By its name as MLIR prints the given module."""
    done = shardy("explain", conflicting, "--value", "%0", "--dim", "1")
    assert done.exit_code == 0
    assert done.stdout.startswith("%0: tensor<8x4xf32>, made by stablehlo.dot_general %0 at dot.mlir:4:8\n")
    assert 'lost: "a" on %arg1 dim 1' in done.stdout
    assert "dimension 0" not in done.stdout


def test_the_json_of_a_value_has_the_same(shardy: Shardy, conflicting: str) -> None:
    """The fields of the classes are the keys."""
    done = shardy("explain", conflicting, "--value", "%0", "--json")
    data = json.loads(done.stdout)
    assert data["value"] == "%0"
    present = data["dimensions"][0]["present"]
    assert present[0]["origin"]["annotation"] == "function argument %arg0"
    assert present[0]["moves"][0]["direction"] == "forward"
    codes = [reason["code"] for item in data["dimensions"][1]["missing"] for reason in item["reasons"]]
    assert "lost" in codes


@pytest.mark.parametrize("asked", [("--value", "%arg0"), ("--op", "stablehlo.tanh"), ("--reshard", "0")])
def test_the_json_has_the_warnings_of_the_run(
    shardy: Shardy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, str]
) -> None:
    """A sharding that was taken away matters to who reads the explanation, by whatever program."""
    monkeypatch.chdir(tmp_path)
    Path("uneven.mlir").write_text(
        """sdy.mesh @mesh = <["x"=2]>
        func.func @main(%a: tensor<5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<5xf32> {
          %0 = stablehlo.tanh %a : tensor<5xf32>
          return %0 : tensor<5xf32>
        }""",
        encoding="utf-8",
    )
    done = shardy("explain", "uneven.mlir", *asked, "--json")
    assert [item["code"] for item in json.loads(done.stdout)["warnings"]] == ["sharding-reduced"]
    assert done.stderr.count("sharding-reduced") == 1


def test_an_op_is_explained(shardy: Shardy, conflicting: str) -> None:
    """By its place, too."""
    done = shardy("explain", conflicting, "--op", "dot.mlir:4")
    assert done.exit_code == 0
    assert "factor k of size 16, reduction: %arg0 dim 1, %arg1 dim 0" in done.stdout


def test_the_options_of_a_run_count(shardy: Shardy, conflicting: str) -> None:
    """Another sharding of an argument changes the explanation, and so does another order."""
    done = shardy("explain", conflicting, "--value", "%0", "--in-sharding", "arg0=b,None")
    assert '"b" comes from function argument %arg0' in done.stdout
    done = shardy("explain", conflicting, "--value", "%0", "--schedule", "flat")
    assert "level 0 (everything)" in done.stdout


def test_reshards_are_listed_and_explained(shardy: Shardy, conflicting: str) -> None:
    """With a table of what other annotations would change."""
    listed = shardy("explain", conflicting, "--reshards")
    assert listed.stdout.startswith("0: sdy.reshard of %arg1")
    assert len(listed.stdout.splitlines()) == 1
    done = shardy("explain", conflicting, "--reshard", "0")
    assert done.exit_code == 0
    assert 'loses "a", which it has from function argument %arg1' in done.stdout
    assert "What another annotation would change" in done.stdout
    assert "1 -> 0" in done.stdout
    data = json.loads(shardy("explain", conflicting, "--reshard", "0", "--limit", "1", "--json").stdout)
    (trial,) = data["trials"]
    assert (trial["removes"], trial["before"], trial["after"]) == (True, {"sdy.reshard": 1}, {})


NARROWED = """sdy.mesh @mesh = <["data"=4]>
func.func @main(%x: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %n: tensor<64x64xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})
    -> (tensor<64x64xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
        tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = sdy.sharding_constraint %x <@mesh, [{}, {}]> : tensor<64x64xf32>
  %1 = stablehlo.convert %0 : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %2 = stablehlo.convert %n : (tensor<64x64xbf16>) -> tensor<64x64xf32>
  %3 = stablehlo.sine %2 : tensor<64x64xf32>
  return %1, %3 : tensor<64x64xbf16>, tensor<64x64xf32>
}"""
SENT = 3 * 64 * 64 // 4


def test_moves_of_communication_passes_are_reported(shardy: Shardy, tmp_path: Path) -> None:
    """Each move has the bytes before and after, and the numbers of the reshards that it concerns."""
    path = tmp_path / "narrowed.mlir"
    path.write_text(NARROWED)
    listed = shardy("explain", str(path), "--reshards").stdout.splitlines()
    numbers = {line.partition(":")[0]: line for line in listed if line[0].isdigit()}
    changes = [line.removeprefix("in the local program: ") for line in listed if not line[0].isdigit()]
    wide, narrow = f"{4 * SENT / 1024:.1f} KiB", f"{2 * SENT / 1024:.1f} KiB"
    after, ahead = (next(line for line in changes if word in line) for word in ("behind", "before"))
    assert after.startswith(f"moved behind stablehlo.convert: {narrow} instead of {wide} (")
    assert ahead.startswith(f"moved before stablehlo.convert, stablehlo.sine: {narrow} instead of {wide} (")
    for line in (after, ahead):
        assert all(number in numbers for number in line.partition("(")[2].rstrip(")").split(", "))
    number = next(number for number, line in numbers.items() if "sharding constraint" in line)
    change = after.partition(" (")[0]
    assert f"  in the local program: {change}" in shardy("explain", str(path), "--reshard", number).stdout
    data = json.loads(shardy("explain", str(path), "--reshards", "--json").stdout)
    assert data[int(number)]["changes"] == [change]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "there is nothing to explain"),
        (("--value", "%0", "--op", "%0"), "--value and --op exclude each other"),
        (("--op", "%0", "--dim", "0"), "--dim belongs to --value"),
        (("--reshards", "--names", "result"), "names of the given module"),
        (("--value", "%9"), "the program has no value %9"),
        (("--reshard", "7"), "there is no reshard 7"),
    ],
)
def test_what_makes_no_sense_is_an_error(
    shardy: Shardy, conflicting: str, options: tuple[str, ...], message: str
) -> None:
    """With a message, and an exit code that is not 0."""
    done = shardy("explain", conflicting, *options)
    assert done.exit_code != 0
    assert message in done.stderr


def test_the_page_of_a_file_is_one_html_file(tmp_path, shardy):
    """The title is the name of the file; nothing is loaded from elsewhere."""
    program, page = tmp_path / "two.mlir", tmp_path / "page.html"
    program.write_text(TWO_LAYERS)
    done = shardy("explore", str(program), "-o", str(page))
    assert done.exit_code == 0
    html = page.read_text()
    assert "<title>two.mlir</title>" in html
    assert "src=" not in html
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "")


def test_files_for_model_explorer_are_two(tmp_path, shardy):
    """The graph and the numbers of its nodes are JSON in the folder that was given."""
    program, folder = tmp_path / "two.mlir", tmp_path / "files"
    program.write_text(TWO_LAYERS)
    assert shardy("explore", str(program), "--model-explorer", str(folder)).exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["graph.json", "node_data.json"]
    assert json.loads((folder / "graph.json").read_text())["label"] == "two.mlir"


def test_there_must_be_something_to_write(tmp_path, shardy):
    """Without an output the command says which there are; random orders belong to a sweep."""
    program = tmp_path / "two.mlir"
    program.write_text(TWO_LAYERS)
    done = shardy("explore", str(program))
    assert done.exit_code == 2
    assert "-o page.html" in done.stderr
    done = shardy("explore", str(program), "-o", str(tmp_path / "page.html"), "--random", "3")
    assert done.exit_code == 2
    assert "--sweep" in done.stderr
