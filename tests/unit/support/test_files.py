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
from shardy_py.support.files import write_atomically

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
        "import sys\nfrom shardy_py.support.files import write_atomically\n"
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
    left, right = tmp_path / "one", tmp_path / "other"
    left.symlink_to(right)
    right.symlink_to(left)
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(left, "new")
    assert left.is_symlink()
    assert right.is_symlink()


@posix
def test_all_names_of_a_file_show_the_new_content(tmp_path: Path) -> None:
    """A hard link stays one, with a longer and with a shorter content, also behind a symbolic link."""
    target, other, link = tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "link"
    target.write_text("old")
    os.link(target, other)
    link.symlink_to(other)
    for place, content in ((target, "longer than before"), (other, "new"), (link, "newer")):
        write_atomically(place, content)
        assert target.read_text() == other.read_text() == content
    assert target.stat().st_nlink == 2


@posix
def test_a_linked_file_is_as_it_was_where_space_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Space is asked for before the first byte is written."""
    target = tmp_path / "a.txt"
    target.write_text("old")
    os.link(target, tmp_path / "b.txt")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", fail)
    with pytest.raises(OSError, match="No space"):
        write_atomically(target, "longer than before")
    assert target.read_text() == "old"


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444 | 0o200, 0o755, 0o2660])
def test_no_file_has_another_mode_at_any_time(mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written has the mode of the old file before it has any content, and never a wider one."""
    target = tmp_path / "a.txt"
    target.write_text("old")
    target.chmod(mode)
    modes: list[int] = []
    fdopen = os.fdopen

    class Watched:
        def __init__(self, stream: object) -> None:
            self.stream = stream

        def __enter__(self) -> Watched:
            return self

        def __exit__(self, *_: object) -> None:
            self.stream.__exit__(*_)  # type: ignore[attr-defined]

        def write(self, data: bytes) -> None:
            modes.extend(path.stat().st_mode & 0o7777 for path in tmp_path.iterdir())
            self.stream.write(data)  # type: ignore[attr-defined]

    monkeypatch.setattr(os, "fdopen", lambda *given, **options: Watched(fdopen(*given, **options)))
    write_atomically(target, "new")
    assert modes == [mode, mode]
    assert (target.read_text(), target.stat().st_mode & 0o7777) == ("new", mode)


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_and_the_group_stay(tmp_path: Path) -> None:
    """A file of somebody else stays theirs."""
    target = tmp_path / "a.txt"
    for owner, group in ((12345, 12346), (0, 12346)):
        target.write_text("old")
        os.chown(target, owner, group)
        write_atomically(target, "new")
        assert (target.read_text(), target.stat().st_uid, target.stat().st_gid) == ("new", owner, group)


@posix
def test_attributes_stay(tmp_path: Path) -> None:
    """Extended attributes, among them the lists of who may do what, are those of the old file."""
    target = tmp_path / "a.txt"
    target.write_text("old")
    try:
        os.setxattr(target, "user.note", b"mine")
    except (OSError, AttributeError):
        pytest.skip("the file system has no attributes")
    write_atomically(target, "new")
    assert (target.read_text(), os.getxattr(target, "user.note")) == ("new", b"mine")


@posix
def test_a_folder_that_takes_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may be written is, although nothing can be put beside it; a new one is an error."""
    folder = tmp_path / "folder"
    folder.mkdir()
    target = folder / "a.txt"
    target.write_text("old")
    folder.chmod(0o555)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(folder) and access(path, mode))
    try:
        write_atomically(target, "new")
        assert target.read_text() == "new"
        assert os.listdir(folder) == ["a.txt"]
    finally:
        folder.chmod(0o755)


@posix
def test_names_of_any_length_and_of_any_bytes(tmp_path: Path) -> None:
    """The name of the hidden file does not depend on that of the file."""
    for name in ("é" * 127, "a\nb", os.fsdecode(b"no-utf8-\xff"), " "):
        write_atomically(tmp_path / name, "new")
        assert (tmp_path / name).read_text() == "new"


@posix
def test_open_files_of_other_processes_are_not_ours(tmp_path: Path) -> None:
    """A path of another process's open file is that file, not ours of the same number."""
    path = tmp_path / "own.txt"
    with subprocess.Popen(["sleep", "60"], stdout=path.open("w")) as other:
        if not Path(f"/proc/{other.pid}/fd/1").exists():
            other.kill()
            pytest.skip("the system does not show the files of processes")
        write_atomically(f"/proc/{other.pid}/fd/1", "new")
        other.kill()
    assert path.read_text() == "new"


STOPPED = """
import os, signal, sys
def stop(event, arguments):
    if event == {event!r} and (event != "open" or "{folder}" in str(arguments[0])):
        os.kill(os.getpid(), signal.{name})
from shardy_py.support.files import write_atomically
sys.addaudithook(stop)
write_atomically({target!r}, "new")
"""


@posix
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
@pytest.mark.parametrize("event", ["open", "os.rename"])
@pytest.mark.parametrize("has_links", [False, True])
def test_a_writer_that_is_stopped_leaves_no_other_file(name: str, event: str, has_links: bool, tmp_path: Path) -> None:
    """Whichever signal asks it to end, and when, nothing is left beside the file; the process ends by the signal."""
    folder = tmp_path / "folder"
    folder.mkdir()
    target = folder / "a.txt"
    target.write_text("old")
    if has_links:
        os.link(target, tmp_path / "b.txt")
    code = STOPPED.format(event=event, folder=folder, name=name, target=str(target))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    is_reached = event == "open" or not has_links
    assert done.returncode == (-getattr(signal, name) if is_reached else 0), done.stderr
    assert os.listdir(folder) == ["a.txt"]
    assert target.read_text() == ("old" if is_reached else "new")
