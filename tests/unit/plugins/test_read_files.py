"""Files that are read in a block are noted: what is read, by this thread, outside of installed packages."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread

from shardy_py.plugins.read_files import record_read_files


def test_what_is_read_is_noted(tmp_path: Path) -> None:
    """Neither what is written, nor what another thread, a library or an earlier block has read."""
    for name in ("a", "b", "other"):
        (tmp_path / name).write_text("")
    with record_read_files() as read:
        (tmp_path / "a").read_bytes()
        with record_read_files() as inner:
            open(str(tmp_path / "b")).close()
        (tmp_path / "new").write_text("")
        open(json.__file__).close()
        thread = Thread(target=(tmp_path / "other").read_text)
        thread.start()
        thread.join()
    (tmp_path / "other").read_text()
    assert list(read) == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert list(inner) == [str(tmp_path / "b")]
