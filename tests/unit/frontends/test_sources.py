"""The bytes of sources."""

from __future__ import annotations

from pathlib import Path

from shardy_py.frontends.sources import source_bytes, source_text


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    """A file that an editor has put a byte order mark in front of is read as without."""
    path = tmp_path / "program.mlir"
    path.write_text("module {}", encoding="utf-8-sig")
    assert source_bytes(path, "-") == (b"module {}", str(path))
    assert source_text(path, "-") == ("module {}", str(path))
