"""Files that are replaced only when they are complete."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shardy_py.cli import opt
from shardy_py.files import write_atomically

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")


def test_a_file_keeps_its_old_content_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that fails half-way leaves the old file, and nothing beside it."""
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_atomically(target, "new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_optimizer_replaces_its_output_when_it_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``shardy-opt -o`` leaves the old file where writing fails."""
    source, target = tmp_path / "m.mlir", tmp_path / "out.mlir"
    source.write_text("module {\n}\n")
    target.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert opt.main([str(source), "-o", str(target)]) == 2
    assert target.read_text() == "old"


@posix
def test_modes_and_links_stay(tmp_path: Path) -> None:
    """The new file has the old one's mode, a new one that of the umask; a link stays one, also where it dangles."""
    target, link = tmp_path / "a.txt", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("a.txt")
    write_atomically(link, "new")
    assert link.is_symlink()
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("new", 0o640)
    dangling = tmp_path / "dangling"
    dangling.symlink_to("b.txt")
    write_atomically(dangling, "new")
    assert dangling.is_symlink()
    assert (tmp_path / "b.txt").read_text() == "new"
    (tmp_path / "c.txt").touch()
    assert (tmp_path / "b.txt").stat().st_mode == (tmp_path / "c.txt").stat().st_mode


@posix
def test_pipes_and_devices_are_written_to(tmp_path: Path) -> None:
    """What is no regular file is not replaced."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        write_atomically(pipe, "text\n")
        assert reader.communicate(timeout=10)[0] == "text\n"
    assert pipe.is_fifo()
    write_atomically("/dev/null", "text")
    assert Path("/dev/null").is_char_device()


@posix
def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    """Whenever a process is killed, the file is the old or the new one."""
    target = tmp_path / "big"
    target.write_bytes(b"0" * 3_000_000)
    program = (
        "import sys\nfrom shardy_py.files import write_atomically\n"
        "print('ready', flush=True)\n"
        "while True:\n    for digit in b'12':\n        write_atomically(sys.argv[1], bytes([digit]) * 3_000_000)\n"
    )
    for delay in (0.01, 0.03):
        with subprocess.Popen([sys.executable, "-c", program, str(target)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(delay)
            writer.send_signal(signal.SIGKILL)
        content = target.read_bytes()
        assert len(content) == 3_000_000
        assert len(set(content)) == 1


@posix
def test_a_circle_of_links_is_an_error(tmp_path: Path) -> None:
    """Links that lead to each other are no place to write to, and stay links."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(one, "new")
    assert one.is_symlink()
    assert other.is_symlink()
