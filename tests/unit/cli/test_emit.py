"""``shardy emit``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from tests.unit.kernels.gpu_driver import Driver

ADD = """
func.func @main(%x: tensor<300xf32>, %y: tensor<300xf32>) -> tensor<300xf32> {
  %0 = stablehlo.add %x, %y : tensor<300xf32>
  return %0 : tensor<300xf32>
}"""

AROUND_DOT = """
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.negate %x : tensor<64x64xf32>
  %1 = stablehlo.dot %0, %0 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}"""

HLO = """HloModule wrapped_add

ENTRY e {
  p0 = f32[300]{0} parameter(0)
  ROOT r = f32[300]{0} add(p0, p0)
}
"""

DEVICE = """
name = "toy"
capability = 80
cores = 1
threads_per_core = 64
threads_per_warp = 32
threads_per_block = 1024
shared_bytes = 49152
blocks_x = 65535
"""


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with a fusion, in the current directory."""
    monkeypatch.chdir(tmp_path)
    Path("add.mlir").write_text(ADD, encoding="utf-8")
    Path("dot.mlir").write_text(AROUND_DOT, encoding="utf-8")
    return "add.mlir"


def test_the_level_of_tiles(shardy, add: str) -> None:
    """--level tile prints and runs the kernel a tile at a time, by default or in tiles of a given size."""
    assert "[512] [1] : memref<300xf32, #xtile.layout<[0]>>" in shardy("emit", add, "--level", "tile").output
    sized = shardy("emit", add, "--level", "tile", "--tile-sizes", "64", "--spelling", "xla").output
    assert "#xtile.tiling_info<tile_count:5, tiles_per_workgroup:1>" in sized
    assert "= xla.apply_indexing" in sized
    run = shardy("emit", add, "--level", "tile", "--run").output
    first, results = run.split("\n", 1)
    assert first.endswith(": 1 tile")
    assert results == shardy("emit", add, "--run").output.split("\n", 1)[1]
    assert results.startswith("result0")
    sized_run = shardy("emit", add, "--level", "tile", "--tile-sizes", "64", "--run").output
    assert sized_run.split("\n", 1) == [first.replace("1 tile", "5 tiles"), results]
    for sizes, problem in (("48", "have not the sizes [48]"), ("4x", "--tile-sizes takes numbers, not '4x'")):
        done = shardy("emit", add, "--level", "tile", "--tile-sizes", sizes)
        assert problem in done.stderr
        assert done.exit_code


def test_the_last_module_is_printed(shardy, add: str) -> None:
    """By default the module after the last pass is printed; --stage prints another one, in either spelling."""
    assert "xla_gpu.loop" not in shardy("emit", add).output
    assert "xla_gpu.loop" in shardy("emit", add, "--stage", "initial").output
    assert "xla.loop" in shardy("emit", add, "--stage", "initial", "--spelling", "xla").output


def test_facts_as_json(shardy, add: str) -> None:
    """--json prints name, emitter, launch, functions and maps."""
    actual = json.loads(shardy("emit", add, "--json").output)
    assert list(actual) == ["kernel", "emitter", "blocks", "threads", "functions", "maps", "ptx"]
    assert (actual["kernel"], actual["emitter"]) == ("main", "loop")
    assert (actual["blocks"], actual["threads"]) == ([3, 1, 1], [128, 1, 1])
    assert actual["functions"] == [{"name": "main_add_0", "shape": [300], "results": ["f32"]}]
    assert "bl_x * 128 + th_x in [0, 299]" in actual["maps"][0]


def test_machine_code_is_printed(shardy, add: str) -> None:
    """--target prints the text for LLVM or PTX; --json has the PTX then."""
    pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")
    assert "define ptx_kernel void @main" in shardy("emit", add, "--target", "llvm").output
    assert ".visible .entry main" in shardy("emit", add, "--target", "ptx").output
    assert "define ptx_kernel void @main" in shardy("emit", add, "--stage", "to-llvm").output
    assert "define" in json.loads(shardy("emit", add, "--json", "--target", "llvm").output)["llvm"]
    assert ".visible .entry main" in json.loads(shardy("emit", add, "--json", "--target", "ptx").output)["ptx"]


def test_hlo_from_stdin(shardy) -> None:
    """HLO text is read, also from stdin; the kernel has the name of the module."""
    actual = json.loads(shardy("emit", "-", "--json", stdin=HLO).output)
    assert (actual["kernel"], actual["blocks"]) == ("wrapped_add", [3, 1, 1])


def test_pieces_are_listed(shardy, add: str) -> None:
    """--list prints the pieces with emitter and launch; --fusion takes one, also one without an entry function."""
    lines = shardy("emit", "dot.mlir", "--list").output.splitlines()
    assert [line for line in lines if line[0] != " "] == [
        "0  negate_0: loop, 32 x 128",
        "1  transpose_1: transpose, 4 x 128",
    ]
    listed = json.loads(shardy("emit", "dot.mlir", "--list", "--json").output)
    assert [item["ops"] for item in listed] == [["stablehlo.negate"], ["stablehlo.transpose"]]
    assert "@negate_0" in shardy("emit", "dot.mlir", "--fusion", "0").output
    actual = json.loads(shardy("emit", "dot.mlir", "--fusion", "1", "--json").output)
    assert (actual["emitter"], actual["blocks"]) == ("transpose", [4, 1, 1])


def test_ops_without_a_kernel_are_listed(shardy, add: str) -> None:
    """--coverage counts the ops in kernels, and names the others with reasons, as lines and as JSON."""
    lines = shardy("emit", "dot.mlir", "--coverage").output.splitlines()
    assert lines[0] == "kernels: 2, with 2 of 3 ops"
    assert lines[1] == "  1 stablehlo.dot: contractions are left to libraries [contraction]"
    assert lines[3] == "    first at dot.mlir:4:8"
    listed = json.loads(shardy("emit", "dot.mlir", "--coverage", "--json").output)
    assert (listed["ops"], listed["covered"], listed["uncovered"][0]["code"]) == (3, 2, "contraction")
    assert shardy("emit", add, "--coverage").output == "kernels: 1, with 1 of 1 ops\n"
    assert "exclude each other" in shardy("emit", add, "--coverage", "--list").output


def test_stages_are_written(shardy, add: str) -> None:
    """--stages writes a file per stage, and what LLVM and the device get."""
    done = shardy("emit", add, "--stages", "stages")
    assert (done.exit_code, done.output) == (0, "")
    names = sorted(path.name for path in Path("stages").iterdir())
    assert names[:2] == ["00.simplify-arith.mlir", "01.canonicalize.mlir"]
    assert names[-3:] == ["initial.mlir", "kernel.ptx", "to-llvm.ll"]


def test_the_device_is_chosen(shardy, add: str) -> None:
    """--device-spec takes a name or a TOML file, on which the launch depends."""
    Path("toy.toml").write_text(DEVICE, encoding="utf-8")
    assert json.loads(shardy("emit", add, "--json", "--device-spec", "toy.toml").output)["threads"] == [75, 1, 1]
    assert json.loads(shardy("emit", add, "--json", "--device-spec", "a100").output)["threads"] == [128, 1, 1]


def test_kernels_run(shardy, add: str) -> None:
    """--run runs the kernel on given or on made-up arguments, and writes what it computes."""
    x, y = np.arange(300, dtype=np.float32), np.ones(300, dtype=np.float32)
    np.savez("in.npz", arg0=x, arg1=y)
    done = shardy("emit", add, "--run", "--inputs", "in.npz", "--outputs", "out.npz")
    assert done.output.splitlines() == [
        "main: 3 x 128 threads",
        "result0: tensor<300xf32>, from 1 to 300, in sum 45150",
    ]
    np.testing.assert_array_equal(np.load("out.npz")["result0"], x + y)
    assert shardy("emit", add, "--run").output == shardy("emit", add, "--run", "--stage", "initial").output
    assert shardy("emit", add, "--run").output != shardy("emit", add, "--run", "--seed", "1").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fusion", "7"), "there is no piece 7; there are 1"),
        (("--stage", "canonicalise"), "did you mean canonicalize"),
        (("--device-spec", "h10"), "did you mean h100"),
        (("--list", "--fusion", "0"), "exclude each other"),
        (("--run", "--json"), "exclude each other"),
        (("--run", "--inputs", "none.npz"), "none.npz"),
    ],
)
def test_wrong_options(shardy, add: str, arguments: tuple[str, ...], message: str) -> None:
    """What an option does not know is an error with the fix, and exit code 2."""
    done = shardy("emit", add, *arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_times_on_a_gpu(shardy, add: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """--time prints the time on a GPU, with --against that of another PTX beside it."""
    pytest.importorskip("llvmlite", reason="PTX needs the extra 'codegen'")
    driver = Driver(lambda _: None)
    monkeypatch.setattr("shardy_py.kernels.run.device.nvidia_driver", lambda: driver)
    shardy("emit", add, "--target", "ptx", "-o", "add.ptx")
    lines = shardy("emit", add, "--time", "--against", "add.ptx").output.splitlines()
    assert lines == ["on Stand-in:", "  main: 12.5 us", "  add.ptx: 12.5 us, 1.00 times as long"]
    assert "add --time" in shardy("emit", add, "--against", "add.ptx").output
    assert "exclude each other" in shardy("emit", add, "--time", "--run").output
    Path("none.ptx").write_text("nothing", encoding="utf-8")
    assert "no kernel of PTX" in shardy("emit", add, "--time", "--against", "none.ptx").output


def test_no_gpu(shardy, add: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU --time says so, and what else runs kernels."""
    pytest.importorskip("llvmlite", reason="PTX needs the extra 'codegen'")
    monkeypatch.setattr("shardy_py.kernels.run.device.nvidia_driver", lambda: Driver(lambda _: None, init=100))
    done = shardy("emit", add, "--time")
    assert done.exit_code == 2
    assert "no GPU of NVIDIA" in done.output


def test_refusals(shardy, add: str) -> None:
    """A function with an op that no kernel has inside is refused with the op, its place and the fix."""
    Path("sort.mlir").write_text(
        """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}""",
        encoding="utf-8",
    )
    done = shardy("emit", "sort.mlir")
    assert done.exit_code == 2
    assert "sort.mlir:3:8: error: 'stablehlo.sort' op: " in done.output
    assert "--list" in done.output
    assert shardy("emit", "sort.mlir", "--list").output == "no piece of this program can be a kernel\n"


def test_reasons_and_pictures(shardy, add: str) -> None:
    """--explain says why, --draw shows what a warp accesses; one of them at a time."""
    assert shardy("emit", add, "--explain").output.startswith("emitter loop: ")
    text = shardy("emit", add, "--draw", "text", "--block", "2", "--warp", "1").output
    assert "threads 0-11: 1152 + 4 a thread" in text
    assert max(map(len, text.splitlines())) <= 80
    assert shardy("emit", add, "--draw", "text", "-o", "picture.txt").exit_code == 0
    assert max(map(len, Path("picture.txt").read_text(encoding="utf-8").splitlines())) == 109
    assert shardy("emit", add, "--draw", "svg").output.startswith("<svg ")
    both = shardy("emit", add, "--draw", "svg", "--explain")
    assert both.exit_code == 2
    assert "--explain and --draw exclude each other" in both.output


def test_the_page_of_stages(shardy, add: str) -> None:
    """--page writes a file of its own; there is no other output beside it."""
    done = shardy("emit", add, "--page", "page.html")
    assert done.output.startswith("wrote page.html: ")
    assert Path("page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "-o has no effect on a page" in shardy("emit", add, "--page", "page.html", "-o", "x").output
    assert "--draw and --page exclude each other" in shardy("emit", add, "--page", "p", "--draw", "svg").output
