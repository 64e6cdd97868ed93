"""Outcomes of a sweep on disk: one line of JSON each, written as they come, so that a sweep that was stopped goes on.

The first line says what was swept. A file of another sweep is refused. A last line that was cut off is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from attrs import evolve

from shardy_py.analysis.rows import Outcome, outcome_data, parse_outcome
from shardy_py.errors import Diagnostic, OptionError

FORMAT = "shardy-sweep"
VERSION = 1


class SweepStore:
    """A file of outcomes, open for more; a context manager.

    Args:
        path: The file. One that exists must be of the same sweep; its outcomes are kept.
        header: What is swept: texts by name, all of which must be equal for outcomes to be of use.

    Raises:
        OptionError: the file is no store, or one of another sweep, or it cannot be read or written.
    """

    def __init__(self, path: str | Path, header: Mapping[str, str]) -> None:
        self.path = Path(path)
        self._header = {"format": FORMAT, "version": VERSION, **header}
        self._outcomes: dict[str, Outcome] = {}
        try:
            self._stream = self._open()
        except OSError as error:
            reason = error.strerror or str(error)
            raise OptionError(
                Diagnostic("store", f"the store cannot be opened: {reason}", str(path), hint="give another file")
            ) from None

    def __enter__(self) -> SweepStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def __len__(self) -> int:
        return len(self._outcomes)

    def find(self, name: str, schedule: str) -> Outcome | None:
        """Return the outcome of a schedule, by its text, whatever its name was then; None where there is none."""
        found = self._outcomes.get(schedule)
        return None if found is None else evolve(found, name=name)

    def add(self, outcome: Outcome) -> None:
        """Write an outcome; it is in the file when this returns."""
        self._outcomes[outcome.schedule] = outcome
        self._write(outcome_data(outcome))

    def _write(self, data: Mapping[str, Any]) -> None:
        self._stream.write(f"{json.dumps(data, ensure_ascii=False)}\n")
        self._stream.flush()

    def _open(self) -> IO[str]:
        """Read what is there and open the file for more."""
        content = self.path.read_bytes() if self.path.exists() else b""
        whole, line_end, rest = content.rpartition(b"\n")
        if not line_end and not json.dumps(self._header).encode().startswith(rest):
            raise self._problem("this is no store of a sweep", 1)
        if line_end:
            self._read(whole)
        stream = self.path.open("a", encoding="utf-8")
        stream.truncate(len(content) - len(rest))
        self._stream = stream
        if not line_end:
            self._write(self._header)
        return stream

    def _read(self, content: bytes) -> None:
        lines = self._parsed(content)
        self._check(next(lines)[1])
        for number, data in lines:
            try:
                outcome = parse_outcome(data)
            except (TypeError, ValueError) as error:
                raise self._problem(f"the line is no outcome: {error}", number) from None
            self._outcomes[outcome.schedule] = outcome

    def _parsed(self, content: bytes) -> Iterator[tuple[int, Any]]:
        for number, line in enumerate(content.split(b"\n"), start=1):
            try:
                yield number, json.loads(line)
            except ValueError:
                raise self._problem("this is no store of a sweep", number) from None

    def _check(self, found: Any) -> None:
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise self._problem("this is no store of a sweep", 1)
        different = [key for key in dict.fromkeys((*self._header, *found)) if found.get(key) != self._header.get(key)]
        if different:
            raise self._problem(f"the store is of another sweep: {', '.join(different)} differ", 1)

    def _problem(self, message: str, line: int) -> OptionError:
        hint = "give the file of the same program, machine, first schedule and version, or one that does not exist"
        return OptionError(Diagnostic("store", message, f"{self.path}:{line}", hint=hint))
