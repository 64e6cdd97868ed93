"""Outcomes of a sweep on disk: one line of JSON each, written as they come, so that a sweep that was stopped goes on.

The first line says what was swept. A file of another sweep is refused. A last line that was cut off is dropped, any
other line that is not a valid outcome is left alone and reported. An outcome has the key of the plugins it was
evaluated with; those of plugins that have changed since are left alone, and evaluated again.

Several processes may write to one store at once: each line is written under a lock, which is a file beside it. A store
that is removed or replaced meanwhile is written again.
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

from shardy_py.cost.sweeps.outcomes import Outcome, outcome_data, parse_outcome
from shardy_py.errors import Diagnostic, OptionError, require_library

if TYPE_CHECKING:
    from filelock import FileLock

FORMAT = "shardy-sweep"
VERSION = 2
_PLUGINS = "plugins"
"""The name in a line of the key of the plugins."""
_SECONDS = 60
"""Seconds that a process waits for another one that writes a line."""
_MAX_PROBLEMS = 20
"""Number of bad lines that are reported one by one."""
_MAX_TEXT = 60
"""Number of characters of a bad line that an error shows."""


class SweepStore:
    """A file of outcomes, open for more; a context manager.

    Args:
        path: The file. One that exists must be of the same sweep; its outcomes are kept.
        header: What is swept: texts by name, all of which must be equal for outcomes to be of use.
        plugins: The key of the plugins that outcomes are evaluated with.

    Attributes:
        problems: The lines that are not valid outcomes, which count as missing, and what became of the file since.

    Raises:
        OptionError: the file is no store, or one of another sweep, or it cannot be read, locked or written.
    """

    def __init__(self, path: str | Path, header: Mapping[str, str], *, plugins: str = "") -> None:
        self.path = Path(path)
        self.problems: tuple[Diagnostic, ...] = ()
        self._header = {"format": FORMAT, "version": VERSION, **header}
        self._plugins = plugins
        self._first_line = _line(self._header)
        self._size = 0
        with self._errors():
            self._lock = _lock_beside(self.path)
            with self._locked():
                self._handle, self._outcomes = self._open()

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
        outcome = self._outcomes.get(schedule)
        return None if outcome is None else evolve(outcome, name=name)

    def add(self, outcome: Outcome) -> None:
        """Write an outcome; it is in the file when this returns.

        A file that was removed or replaced since the last time is written again, with all outcomes.

        Raises:
            OptionError: the file cannot be written or locked, or was replaced by one of another sweep.
        """
        self._outcomes[outcome.schedule] = outcome
        with self._errors(), self._locked():
            if not self._is_same_file():
                self._write_again()
                return
            # What a process left that was killed while it wrote.
            _drop_cut_line(self._handle)
            self._append(outcome)

    def _is_same_file(self) -> bool:
        """Return whether the file still is the one that was opened, with all that this process has read or written."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._handle)) and self._is_whole()
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _is_whole(self) -> bool:
        os.lseek(self._handle, 0, os.SEEK_SET)
        is_cut = os.fstat(self._handle).st_size < self._size
        return not is_cut and os.read(self._handle, len(self._first_line)) == self._first_line

    def _write_again(self) -> None:
        """Open what is in the place of the file now, and add the outcomes that it does not have."""
        handle, stored = self._open()
        os.close(self._handle)
        self._handle = handle
        for outcome in [item for schedule, item in self._outcomes.items() if schedule not in stored]:
            self._append(outcome)
        self._outcomes = stored | self._outcomes
        message = "the store was removed or replaced while it was written"
        hint = f"it was written again, and has the {len(self._outcomes)} results that were known then"
        self.problems += (Diagnostic("store-replaced", message, str(self.path), hint=hint),)

    def _append(self, outcome: Outcome) -> None:
        self._size = _append(self._handle, _line({_PLUGINS: self._plugins, **outcome_data(outcome)}))

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

    def _open(self) -> tuple[int, dict[str, Outcome]]:
        """Read what is there and open the file for more; return its handle and its outcomes by schedule."""
        content = self.path.read_bytes() if self.path.exists() else b""
        lines, line_end, rest = content.rpartition(b"\n")
        self._first_line = _line(self._header)
        if not line_end and not self._first_line.startswith(rest):
            raise self._problem("this is no store of a sweep", 1)
        outcomes = self._read(lines) if line_end else {}
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            self._size = _drop_cut_line(handle)
            if not line_end:
                self._size = _append(handle, self._first_line)
        except BaseException:
            os.close(handle)
            raise
        return handle, outcomes

    def _read(self, content: bytes) -> dict[str, Outcome]:
        first, *lines = content.split(b"\n")
        self._check(first)
        self._first_line = first + b"\n"
        outcomes: dict[str, Outcome] = {}
        outdated: set[str] = set()
        problems: list[Diagnostic] = []
        for number, line in enumerate(lines, start=2):
            try:
                plugins, outcome = _parse_line(line)
            except (TypeError, ValueError, RecursionError) as error:
                problems.append(self._bad_line(line, number, error))
                continue
            if plugins == self._plugins:
                outcomes[outcome.schedule] = outcome
            else:
                outdated.add(outcome.schedule)
        if len(problems) > _MAX_PROBLEMS:
            rest = f"and {len(problems) - _MAX_PROBLEMS} more lines are not valid outcomes"
            problems[_MAX_PROBLEMS:] = [Diagnostic("store-line", rest, str(self.path))]
        self.problems += (*problems, *self._outdated(len(outdated - outcomes.keys())))
        return outcomes

    def _outdated(self, count: int) -> Iterator[Diagnostic]:
        """Yield the warning of schedules whose outcomes are those of other plugins, if there are any."""
        if count:
            message = f"plugins, or modules that they import, have changed since {count} schedules were evaluated"
            hint = "those of them that are asked for are evaluated again"
            yield Diagnostic("store-plugins", message, str(self.path), hint=hint)

    def _bad_line(self, line: bytes, number: int, error: Exception) -> Diagnostic:
        reason = "it is blank" if not line.strip() else "it is no JSON" if _parsed(line) is None else str(error)
        hint = "its schedule is evaluated again"
        return Diagnostic(
            "store-line", f"the line is not a valid outcome: {reason}", f"{self.path}:{number}", hint=hint
        )

    def _check(self, line: bytes) -> None:
        """Check that the first line says that the store is of this sweep.

        Raises:
            OptionError: it does not.
        """
        header = _parsed(line)
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise self._problem("this is no store of a sweep", 1)
        names = dict.fromkeys((*self._header, *header))
        different = ", ".join(name for name in names if header.get(name) != self._header.get(name))
        if different:
            shown = different if different.isprintable() else repr(different)
            raise self._problem(f"the store is of another sweep, with another {shown[:_MAX_TEXT]}", 1)

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
    if place.exists() and not place.is_file():
        raise OSError(22, "it is not a regular file", str(path))
    if not place.parent.is_dir():
        # The library would make the folder.
        raise FileNotFoundError(2, "there is no such folder", str(path))
    return FileLock(place.with_name(f".{place.name[:200]}.lock"), timeout=_SECONDS)


def _parse_line(line: bytes) -> tuple[str, Outcome]:
    """Return the key of the plugins and the outcome of a line.

    Raises:
        ValueError: it has none.
        RecursionError: it is nested too deep.
    """
    # In any other encoding than UTF-8 it would not be a line.
    data = json.loads(line.decode(), object_pairs_hook=_unique)
    plugins = data.pop(_PLUGINS, None) if isinstance(data, dict) else None
    outcome = parse_outcome(data)
    if not isinstance(plugins, str):
        raise ValueError(f"its {_PLUGINS} is {repr(plugins)[:_MAX_TEXT]}")
    return plugins, outcome


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON.

    Raises:
        ValueError: a name occurs twice.
    """
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"it has two values of {next(name for name in names if names.count(name) > 1)[:_MAX_TEXT]!r}")
    return data


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode())
    except (ValueError, RecursionError):
        return None


def _line(data: Mapping[str, Any]) -> bytes:
    try:
        return f"{json.dumps(data, ensure_ascii=False)}\n".encode()
    except UnicodeEncodeError:
        # A file name that is no UTF-8 has halves of characters.
        return f"{json.dumps(data)}\n".encode()


def _append(handle: int, line: bytes) -> int:
    """Write a line behind all others; return the size of the file."""
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(handle, rest) :]
    return os.lseek(handle, 0, os.SEEK_END)


def _drop_cut_line(handle: int) -> int:
    """Shorten a file to its last complete line; return its size."""
    end = size = os.lseek(handle, 0, os.SEEK_END)
    size_kept = 0
    while end:
        begin = max(0, end - 65536)
        os.lseek(handle, begin, os.SEEK_SET)
        position = os.read(handle, end - begin).rfind(b"\n")
        if position >= 0:
            size_kept = begin + position + 1
            break
        end = begin
    if size_kept != size:
        os.truncate(handle, size_kept)
    return size_kept
