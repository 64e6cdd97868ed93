"""``shardy propagate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.api.test_bad_input import REFUSED
from tests.unit.api.test_propagate import CALLS
from tests.unit.cli.conftest import MODULE


def test_module_to_stdout_and_table_to_stderr(module: str, shardy: Any) -> None:
    """Without -o the module is on stdout alone, so that it can be piped; the table is on stderr."""
    done = shardy("propagate", module)
    assert done.exit_code == 0
    assert '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}' in done.stdout
    assert done.stdout.startswith("module")
    assert "tensors" not in done.stdout
    assert "toy.window" in done.stderr
    assert "in.mlir:6:8" in done.stderr


def test_output_file(module: str, shardy: Any) -> None:
    """With -o the file has what would be on stdout, and stdout has nothing."""
    text = shardy("propagate", module, "-q").stdout
    done = shardy("propagate", module, "-q", "-o", "out.mlir")
    assert (done.stdout, done.stderr) == ("", "")
    assert Path("out.mlir").read_text() == text


def test_stdin(module: str, shardy: Any) -> None:
    """A dash reads the module from stdin."""
    assert shardy("propagate", "-", "-q", stdin=MODULE).stdout == shardy("propagate", module, "-q").stdout


def test_json(module: str, shardy: Any) -> None:
    """JSON is all there is on stdout, and has the summary, the coverage and the shardings."""
    report = json.loads(shardy("propagate", module, "--json").stdout)
    assert report["summary"]["axes_used"] == {"a": 2, "b": 0}
    assert report["coverage"]["missing"][0]["name"] == "toy.window"
    assert report["arguments"][0]["sharding"] == '<@mesh, [{"a"}, {}]>'
    assert report["results"] == [{"name": "result0", "type": "tensor<8x4xf32>", "sharding": None}]


def test_mesh_and_in_shardings(module: str, shardy: Any) -> None:
    """The mesh and the shardings of arguments may come from the command line."""
    bare = MODULE.split("\n", 1)[1].replace(' {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}', "")
    Path(module).write_text(bare)
    options = ("--mesh", "a=2,b=2", "--in-sharding", "arg0=a,None", "--in-sharding", 'arg1=[{}, {"b"}]')
    report = json.loads(shardy("propagate", module, "--json", *options).stdout)
    assert report["meshes"] == {"mesh": '<["a"=2, "b"=2]>'}
    assert [item["sharding"] for item in report["arguments"]] == ['<@mesh, [{"a"}, {}]>', '<@mesh, [{}, {"b"}]>']


def test_out_shardings(module: str, shardy: Any) -> None:
    """The shardings of results may come from the command line; what is no result is refused with those there are."""
    done = shardy("propagate", module, "--json", "--out-sharding", "result0=None,b")
    assert json.loads(done.stdout)["results"][0]["sharding"] == '<@mesh, [{}, {"b"}]>'
    done = shardy("propagate", module, "-q", "--out-sharding", "result1=None,b")
    assert done.exit_code == 2
    assert "no result 'result1'" in done.stderr
    assert "its results are result0 to result0" in done.stderr
    done = shardy("propagate", module, "-q", "--out-sharding", "None,b")
    assert "this is not RESULT=SHARDING [invalid-out-shardings]" in done.stderr


def test_the_form_for_gspmd(shardy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --for gspmd the module has shardings of GSPMD and nothing of Shardy."""
    monkeypatch.chdir(tmp_path)
    Path("x.mlir").write_text("""sdy.mesh @mesh = <["a"=2, "b"=2]>
    func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
      %0 = stablehlo.negate %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }""")
    done = shardy("propagate", "x.mlir", "-q", "--for", "gspmd")
    assert done.stderr == ""
    assert done.stdout.count('mhlo.sharding = "{devices=[2,2]<=[4] last_tile_dim_replicate}"') == 3
    assert "sdy" not in done.stdout
    assert shardy("propagate", "x.mlir", "-q", "--for", "tpu").exit_code == 2


def test_stubs_complete_the_rules(module: str, shardy: Any) -> None:
    """The file of stubs is a plugin; with it the strict run passes and the result is sharded."""
    assert shardy("propagate", module, "--strict").exit_code == 2
    assert shardy("propagate", module, "-q", "--stubs", "stubs.py").exit_code == 0
    done = shardy("propagate", module, "--strict", "--json", "--plugin", "stubs.py")
    assert json.loads(done.stdout)["results"][0]["sharding"] == '<@mesh, [{"a"}, {}]>'


def test_rules_may_stay(module: str, shardy: Any) -> None:
    """Rules stay on the ops when asked to."""
    assert "sdy.sharding_rule" in shardy("propagate", module, "-q", "--keep-sharding-rules").stdout
    assert "sdy.sharding_rule" not in shardy("propagate", module, "-q").stdout


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("%0 =", "%0", "in.mlir:4:"),
        ('[{"a"}, {}]', '[{"z"}, {}]', 'in.mlir:2:1: error: .*"z"'),
        ('@mesh, [{"a"}', '@mash, [{"a"}', "in.mlir:2:1: error: .*@mash"),
        ('[{"a"}, {}]', '[{"a"}]', "in.mlir:2:1: error: .*rank"),
        ("8x16xf32>, ", "?x16xf32>, ", "in.mlir:"),
        ("@main", "@f() { return }\nfunc.func @g", "in.mlir:2:1: error: .*none is named main"),
    ],
)
def test_bad_modules(module: str, shardy: Any, old: str, new: str, expected: str) -> None:
    """A module that cannot be propagated ends in a message with its place, exit code 2, and the old output file."""
    import re

    Path(module).write_text(MODULE.replace(old, new, 1))
    Path("out.mlir").write_text("before")
    done = shardy("propagate", module, "-o", "out.mlir")
    assert done.exit_code == 2
    assert re.search(expected, done.stderr), done.stderr
    assert "Traceback" not in done.output
    assert Path("out.mlir").read_text() == "before"
    assert sorted(path.name for path in Path().iterdir()) == ["in.mlir", "out.mlir"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no function"),
        ("func.func @main() -> tuple<> { %0 = stablehlo.tuple : tuple<> return %0 : tuple<> }", "tuple"),
        (
            "func.func @main(%a: tensor<*xf32>) -> tensor<*xf32> {\n"
            '%0 = "toy.f"(%a) : (tensor<*xf32>) -> tensor<*xf32>\nreturn %0 : tensor<*xf32> }',
            "in.mlir:2:.*static shape",
        ),
    ],
)
def test_what_cannot_be_propagated(module: str, shardy: Any, text: str, expected: str) -> None:
    """Modules without functions, tuples and unranked tensors are refused with the file and the reason."""
    import re

    Path(module).write_text(text)
    done = shardy("propagate", module)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("in.mlir")
    assert re.search(expected, done.stderr), done.stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["missing.mlir"], "missing.mlir: error: cannot read"),
        (["."], ".: error: cannot read"),
        (["in.mlir", "-o", "missing/out.mlir"], "missing/out.mlir: error: there is no folder missing"),
        (["in.mlir", "-o", "."], "error: Is a directory"),
        (["in.mlir", "--mesh", "a"], "NAME=SIZE"),
        (["in.mlir", "--mesh", "a=4"], "the module has the mesh"),
        (["in.mlir", "--mesh", "a=2,a=2"], "the axis 'a' is there twice"),
        (["in.mlir", "--in-sharding", "arg0"], "ARGUMENT=SHARDING"),
        (["in.mlir", "--in-sharding", "arg9=a"], "no argument 'arg9'"),
        (["in.mlir", "--in-sharding", "arg0=z"], "unknown axis"),
        (["in.mlir", "--strategy", "best"], "'best' is not one of"),
        (["in.mlir", "--strict"], "in.mlir:6:8: error: 'toy.window' op: the op has no sharding rule"),
        (["in.mlir", "--plugin", "in.mlir"], "not a Python file"),
    ],
)
def test_bad_options(module: str, shardy: Any, options: list[str], expected: str) -> None:
    """Options that do not fit end in a message and exit code 2, and print no module."""
    done = shardy("propagate", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert expected in done.stderr


def test_failing_plugin_file(module: str, shardy: Any) -> None:
    """A plugin file that fails is named with the line."""
    Path("plugin.py").write_text("import os\n\n1 / 0\n")
    done = shardy("propagate", module, "--plugin", "plugin.py")
    assert done.exit_code == 2
    assert done.stderr.startswith("plugin.py:3: error: the plugin failed with ZeroDivisionError")


def test_snapshots(module: str, shardy: Any) -> None:
    """With a folder the module after every pass is there, in order."""
    done = shardy("propagate", module, "-q", "--dump-dir", "dump")
    files = sorted(Path("dump").iterdir())
    assert files[0].name == "00.symbol-dce.mlir"
    assert files[-1].read_text() == done.stdout
    assert shardy("propagate", module, "-q", "--dump-dir", "in.mlir").exit_code == 2


def test_functions_and_collectives(module: str, shardy: Any) -> None:
    """The options of the pipeline reach it."""
    Path(module).write_text(CALLS)
    assert shardy("propagate", module, "-q").stdout.count("func.func") == 3
    assert shardy("propagate", module, "-q", "--dedup-functions-fully").stdout.count("func.func") == 2
    both = ("--dedup-functions-fully", "--explicit-collectives")
    assert "sdy.all_gather" in shardy("propagate", module, "-q", *both).stdout


@pytest.mark.parametrize("name", [name for name, (text, *_) in REFUSED.items() if isinstance(text, (str, bytes))])
def test_refused_modules(module: str, shardy: Any, name: str) -> None:
    """Whatever cannot be propagated ends in a message that starts with the file, and in nothing else."""
    text = REFUSED[name][0]
    Path(module).write_bytes(text if isinstance(text, bytes) else text.encode(errors="surrogatepass"))
    done = shardy("propagate", module, "-o", "out.mlir", "--stubs", "stubs.py", "--json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("in.mlir:")
    assert "Traceback" not in done.stderr
    assert [path.name for path in Path().iterdir()] == ["in.mlir"]


def test_copies(module: str, shardy: Any) -> None:
    """With --copies the table and the JSON tell who got a copy of which constant, why, and what became of it."""
    text = """sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x4xf32> {
      %c = stablehlo.constant dense<1.0> : tensor<8x4xf32>
      %0 = stablehlo.add %x, %c : tensor<8x4xf32>
      %1 = stablehlo.multiply %0, %c : tensor<8x4xf32>
      return %1 : tensor<8x4xf32>
    }"""
    Path(module).write_text(text)
    copies = json.loads(shardy("propagate", module, "--json", "--copies").stdout)["copies"]
    assert [(item["op"], item["location"], item["reason"]) for item in copies] == [
        ("stablehlo.constant", "in.mlir:3:12", "constant")
    ] * 2
    assert [(item["user"], item["operand"], item["sharding"], item["outcome"]) for item in copies] == [
        ("stablehlo.add", 1, '<@mesh, [{"a"}, {}]>', "kept"),
        ("stablehlo.multiply", 1, '<@mesh, [{"a"}, {}]>', "merged"),
    ]
    shown = shardy("propagate", module, "--copies", "-o", "out.mlir").stderr
    assert "(ConstantLike)" in shown
    assert "1 of 2 kept" in shown
    assert "copies" not in json.loads(shardy("propagate", module, "--json").stdout)
