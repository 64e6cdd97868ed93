"""``shardy layout``."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

TILED = "f32[3,5]{1,0:T(2,2)}"
SKEWED = "f32[1000,300]{0,1:T(8,128)}"


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ((TILED, "--index", "2,3"), "17"),
        (("--index", "", "u32[]{:T(128)}"), "0"),
        ((TILED, "--bytes"), "96"),
        (("(f32[3], s32[], token[])", "--bytes"), "16"),
        ((SKEWED, "--shard", "2x4", "--bytes"), "163840"),
        ((SKEWED, "--shard", "2x4", "--index", "1,74"), "37121"),
        (("--policy", "tpu-v5e", "f32[5,1]"), "f32[5,1]{0,1:T(1,128)}"),
        (("--policy", "tpu-v5e", "f32[10,4]", "--shard", "2x4"), "f32[5,1]{0,1:T(1,128)}"),
        (("--policy", "tpu-v5e", "f32[5,1]", "--bytes"), "512"),
        (("--policy", "row-major", "(f32[5,1]{0,1:T(1,128)}, token[])"), "(f32[5,1]{1,0}, token[])"),
        (("%a = f32[3]{0:T(4)} add(%x)", "--bytes"), "16"),
    ],
)
def test_one_answer(shardy, arguments: tuple[str, ...], printed: str) -> None:
    """Asked for one thing, the command prints nothing else."""
    done = shardy("layout", *arguments)
    assert (done.exit_code, done.output) == (0, f"{printed}\n")


def test_anatomy(shardy) -> None:
    """By default the parts of the shape and its bytes are printed; --shard makes it those of the local shape."""
    lines = dict(line.split("  ", 1) for line in shardy("layout", TILED).output.splitlines() if line[0] != " ")
    assert {label: text.strip() for label, text in lines.items()} == {
        "shape": TILED,
        "element type": "f32, 32 bits",
        "dimensions": "2 (y=3, x=5), true rank 2",
        "minor to major": "1, 0",
        "tiles": "(2,2)",
        "memory space": "HBM (S(0))",
        "elements": "15",
        "logical bytes": "60",
        "padded bytes": "96",
        "waste": "36 bytes, 37.5%",
    }
    assert "f32[500,75]{0,1:T(8,128)}" in shardy("layout", SKEWED, "--shard", "2x4").output
    operation = shardy("layout", "ROOT %a = f32[?] add(%x, f32[2] %y), k=1").output
    for part in ("add", "y: f32[2]{0}", "k=1", "unknown, a dimension is unbounded"):
        assert part in operation


def test_json(shardy) -> None:
    """The same as data."""
    data = json.loads(shardy("layout", "--json", "s4[3,<=5]{0,1:T(8,128)(8,1)E(4)S(1)}").output)
    assert (data["sizes"], data["tiles"], data["element_bits"]) == ([3, "<=5"], ["(8,128)", "(8,1)"], 4)
    assert (data["logical_bytes"], data["padded_bytes"], data["memory_space"]) == (8, 512, 1)


def test_drawing(shardy, tmp_path: Path) -> None:
    """The picture is printed, or written as SVG."""
    assert "|  2     3  |  6     7  | 10   (11) |" in shardy("layout", TILED, "--draw").output
    out = tmp_path / "out.svg"
    assert shardy("layout", TILED, "--svg", str(out)).output == ""
    assert ElementTree.fromstring(out.read_text()).tag.endswith("svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("f32[2]{0:T(-1)}",), "1:12: error: -1 where a tile size of at least 1 is expected [invalid-number]"),
        (("f32[2]{0:L(0)}",), "1:12: error: 0 where a tail padding"),
        (("f32[2,3]{1,1}", "--bytes"), "1:12: error: dimension 1 stands twice"),
        (("f32[2]", "--index", "2"), "index-out-of-range"),
        (("f32[2]", "--index", "a"), "not numbers like 2,3"),
        (("f32[2]", "--shard", "0"), "invalid-shard-count"),
        (("f32[2]", "--shard", "1x1"), "rank-mismatch"),
        (("f32[2]", "--bytes", "--index", "1"), "exclude each other"),
        (("(f32[2])", "--index", "1"), "needs an array"),
        (("f32[?]", "--bytes"), "unbounded"),
        (("f32[?]", "--policy", "tpu-v5e"), "unbounded"),
    ],
)
def test_refused(shardy, arguments: tuple[str, ...], message: str) -> None:
    """What is not valid ends with exit code 2 and a message that names the place."""
    done = shardy("layout", *arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_propagate_reports_memory(shardy, module: str) -> None:
    """With a layout, the report shows what tensors take on a device, with padding."""
    done = shardy("propagate", module, "--layout", "tpu-v5e", "-o", "out.mlir")
    assert done.exit_code == 0
    # f32[4,16] is 4 rows of 128 columns, f32[16,4] the same the other way around.
    assert "padded bytes per device: arguments 4096, results 2048" in done.output
    data = json.loads(shardy("propagate", module, "--layout", "row-major", "--json", "-q").output)["memory"]
    assert [item["shard"] for item in data["arguments"]] == ["f32[4,16]{1,0}", "f32[16,4]{1,0}"]
    assert data["arguments_padded_bytes"] == 512
