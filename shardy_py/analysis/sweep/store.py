"""Outcomes of a sweep on disk: one line of JSON each, written as they come, so that a sweep that was stopped goes on.

The first line says what was swept. A file of another sweep is refused. A last line that was cut off is dropped, any
other line that is no outcome is left alone and reported.

Several processes may write to one store at once: each line is written under a lock, which is a file beside it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from attrs import evolve

from shardy_py.analysis.sweep.outcomes import Outcome, outcome_data, parse_outcome
from shardy_py.errors import Diagnostic, OptionError, require_library

if TYPE_CHECKING:
    from filelock import FileLock

FORMAT = "shardy-sweep"
VERSION = 1
_SECONDS = 60
"""Seconds that a process waits for another one that writes a line."""
_MAX_PROBLEMS = 20
"""Number of bad lines that are reported one by one."""


class SweepStore:
    """A file of outcomes, open for more; a context manager.

    Args:
        path: The file. One that exists must be of the same sweep; its outcomes are kept.
        header: What is swept: texts by name, all of which must be equal for outcomes to be of use.

    Attributes:
        problems: The lines that are no outcomes, which count as missing.

    Raises:
        OptionError: the file is no store, or one of another sweep, or it cannot be read, locked or written.
    """

    def __init__(self, path: str | Path, header: Mapping[str, str]) -> None:
        self.path = Path(path)
        self.problems: tuple[Diagnostic, ...] = ()
        self._header = {"format": FORMAT, "version": VERSION, **header}
        self._outcomes: dict[str, Outcome] = {}
        with self._errors():
            self._lock = _lock_beside(self.path)
            with self._locked():
                self._handle = self._open()

    def __enter__(self) -> SweepStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._handle)

    def __len__(self) -> int:
        return len(self._outcomes)

    def find(self, name: str, schedule: str) -> Outcome | None:
        """Return the outcome of a schedule, by its text, whatever its name was then; None where there is none."""
        found = self._outcomes.get(schedule)
        return None if found is None else evolve(found, name=name)

    def add(self, outcome: Outcome) -> None:
        """Write an outcome; it is in the file when this returns.

        Raises:
            OptionError: the file cannot be written or locked.
        """
        self._outcomes[outcome.schedule] = outcome
        with self._errors(), self._locked():
            # What a process left that was killed while it wrote.
            _drop_cut_line(self._handle)
            _append(self._handle, outcome_data(outcome))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import Timeout

        try:
            with self._lock:
                yield
        except Timeout:
            message = f"another process has locked the store for {_SECONDS} seconds"
            raise OptionError(
                Diagnostic("store", message, str(self.path), hint=f"end it, or remove {self._lock.lock_file}")
            ) from None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, NotImplementedError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise OptionError(
                Diagnostic("store", f"the store cannot be opened: {reason}", str(self.path), hint="give another file")
            ) from None

    def _open(self) -> int:
        """Read what is there and open the file for more."""
        content = self.path.read_bytes() if self.path.exists() else b""
        whole, line_end, rest = content.rpartition(b"\n")
        if not line_end and not json.dumps(self._header).encode().startswith(rest):
            raise self._problem("this is no store of a sweep", 1)
        if line_end:
            self._read(whole)
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            _drop_cut_line(handle)
            if not line_end:
                _append(handle, self._header)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _read(self, content: bytes) -> None:
        first, *lines = content.split(b"\n")
        self._check(_parsed(first))
        problems: list[Diagnostic] = []
        for number, line in enumerate(lines, start=2):
            try:
                outcome = parse_outcome(json.loads(line))
            except (TypeError, ValueError, RecursionError) as error:
                problems.append(self._bad_line(line, number, error))
                continue
            self._outcomes[outcome.schedule] = outcome
        if len(problems) > _MAX_PROBLEMS:
            rest = f"and {len(problems) - _MAX_PROBLEMS} more lines are no outcomes"
            problems[_MAX_PROBLEMS:] = [Diagnostic("store-line", rest, str(self.path))]
        self.problems = tuple(problems)

    def _bad_line(self, line: bytes, number: int, error: Exception) -> Diagnostic:
        reason = "it is blank" if not line.strip() else "it is no JSON" if _parsed(line) is None else str(error)
        hint = "its schedule is evaluated again"
        return Diagnostic("store-line", f"the line is no outcome: {reason}", f"{self.path}:{number}", hint=hint)

    def _check(self, found: Any) -> None:
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise self._problem("this is no store of a sweep", 1)
        different = [key for key in dict.fromkeys((*self._header, *found)) if found.get(key) != self._header.get(key)]
        if different:
            raise self._problem(f"the store is of another sweep: {', '.join(different)} differ", 1)

    def _problem(self, message: str, line: int) -> OptionError:
        hint = "give the file of the same program, machine, first schedule and version, or one that does not exist"
        return OptionError(Diagnostic("store", message, f"{self.path}:{line}", hint=hint))


def _lock_beside(path: Path) -> FileLock:
    """Return the lock of a store; the file it is made of stays, as removing it would let two processes in."""
    require_library("filelock", purpose="a store needs", extra="parallel")
    from filelock import FileLock

    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise IsADirectoryError(21, "it is a directory", str(path))
    if not place.parent.is_dir():
        # The library would make the folder.
        raise FileNotFoundError(2, "there is no such folder", str(path))
    return FileLock(place.with_name(f".{place.name[:200]}.lock"), timeout=_SECONDS)


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _append(handle: int, data: Mapping[str, Any]) -> None:
    """Write a line behind all others."""
    rest = memoryview(f"{json.dumps(data, ensure_ascii=False)}\n".encode())
    while rest:
        rest = rest[os.write(handle, rest) :]


def _drop_cut_line(handle: int) -> None:
    """Shorten a file to its last whole line."""
    end = size = os.lseek(handle, 0, os.SEEK_END)
    kept = 0
    while end:
        begin = max(0, end - 65536)
        os.lseek(handle, begin, os.SEEK_SET)
        found = os.read(handle, end - begin).rfind(b"\n")
        if found >= 0:
            kept = begin + found + 1
            break
        end = begin
    if kept != size:
        os.truncate(handle, kept)
