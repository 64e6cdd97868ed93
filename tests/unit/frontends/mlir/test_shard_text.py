"""MLIR's dialect ``shard``: grids and shardings are read, and a propagated program is written with them."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

pytest.importorskip("jaxlib", reason="MLIR reads the modules")

import shardy_py as sdy
from shardy_py.cli import opt
from shardy_py.errors import ParseError

TEXT = """
module {
  shard.grid @grid(shape = 2x4)
  func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
    %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
    %0 = shard.shard %x to %s : tensor<8x16xf32>
    %t = shard.sharding @grid split_axes = [[], [1]] : !shard.sharding
    %1 = shard.shard %w to %t annotate_for_users : tensor<16x4xf32>
    %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0]
        : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
}
"""


def test_grids_and_shardings_are_read() -> None:
    """Axes are called by their numbers, and dimensions without axes are whole."""
    result = sdy.propagate(TEXT)
    assert str(result.program.meshes["grid"]) == '<["axis0"=2, "axis1"=4]>'
    assert str(result.arguments[0]) == '<@grid, [{"axis0"}, {}]>'
    assert str(result.results[0]) == '<@grid, [{"axis0"}, {"axis1"}]>'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("shape = 2x4", "shape = 2x?", r"-:3:3: .*unknown size"),
        ("split_axes = [[0]]", "split_axes = [[0]] halo_sizes = [1, 1]", r"-:5:5: .*halo_sizes"),
        ("to %s", "to %r", r"%r is not a sharding"),
        ("split_axes = [[0]]", "split_axes = [[], [], [0]]", r"-:6:10: .*%s shards more dimensions than the 2"),
    ],
)
def test_what_shardy_does_not_know_is_refused(old: str, new: str, words: str) -> None:
    """The error names the place."""
    with pytest.raises(ParseError, match=words):
        sdy.propagate(TEXT.replace(old, new))


def test_what_is_written_is_read() -> None:
    """A propagated program that is written in the dialect ``shard`` has its shardings when it is read."""
    written = run_passes(sdy.propagate(TEXT).text, "shardy-export-to-shard")
    assert "sdy." not in written
    assert str(sdy.propagate(written).results[0]) == '<@grid, [{"axis0"}, {"axis1"}]>'


def test_xdsl_reads_what_is_written() -> None:
    """XDSL has the dialect, and verifies its ops."""
    parser = pytest.importorskip("xdsl.parser", reason="the text is read by the package xdsl")
    from xdsl.context import Context
    from xdsl.dialects import get_all_dialects

    start, end = TEXT.index("stablehlo.dot_general"), TEXT.index("        : (")
    text = f'{TEXT[:start]}"toy.dot"(%0, %1)\n{TEXT[end:]}'
    context = Context(allow_unregistered=True)
    for name, dialect in get_all_dialects().items():
        context.register_dialect(name, dialect)
    module = parser.Parser(context, run_passes(text, "shardy-export-to-shard")).parse_module()
    module.verify()
    names = [op.name for op in module.walk() if op.name.startswith("shard.")]
    assert names == ["shard.grid", *["shard.sharding", "shard.shard"] * 2]


def run_passes(text: str, name: str) -> str:
    """Return what a pass makes of a text."""
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()) as output:
        path = Path(folder, "module.mlir")
        path.write_text(text, encoding="utf-8")
        assert opt.main([str(path), f"-{name}"]) == 0
    return output.getvalue()
