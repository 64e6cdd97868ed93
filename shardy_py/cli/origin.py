"""The origin of a record that a command writes: the versions, the program, the machine and the options."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from shardy_py.cli.session import GivenProgram

_VERSIONS = ("shardy_py", "jaxlib")
_WITHOUT_EFFECT: tuple[str, ...] = (
    "as_json",
    "backend",
    "dask_address",
    "file",
    "json_file",
    "out",
    "output",
    "outputs",
    "plot",
)
_WITHOUT_EFFECT += ("quiet", "save", "store", "timeout", "top")
"""The options of commands that change no figure: what is written where, and who computes it."""


def origin_of(program: GivenProgram, *, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return the origin of a record that the running command makes of a program.

    ``options`` has all options that could change a figure, also those that nobody gave, and ``files`` the digests of
    the files among them.

    Args:
        program: The program.
        without: More options that change no figure of this record.
    """
    context = click.get_current_context(silent=True)
    parameters = {} if context is None else context.params
    left_out = {*_WITHOUT_EFFECT, *without}
    options = {name: _plain(value) for name, value in sorted(parameters.items()) if name not in left_out}
    return {
        **{name: _version(name) for name in _VERSIONS},
        "command": None if context is None else context.info_name,
        "program": _plain(program.file),
        "sha256": _digest_of(program),
        "machine": options.get("machine"),
        "options": {name: value for name, value in options.items() if _is_given(value)},
        "files": {name: digest for name in _texts(options.values()) if (digest := _digest_file(name)) is not None},
    }


def _plain(value: Any) -> Any:
    """Return the value of an option as JSON has it; what is no character in a file name is escaped."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return os.fsencode(str(value)).decode(errors="backslashreplace")


def _is_given(value: Any) -> bool:
    return value is not None and value is not False and value != []


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _texts(value)


def _digest_of(program: GivenProgram) -> str | None:
    """Return a digest of the bytes of a program; None where they cannot be read again."""
    module = program.input.module
    return sha256(module).hexdigest() if isinstance(module, bytes) else _digest_file(program.file)


def _digest_file(name: str) -> str | None:
    try:
        return sha256(Path(name).read_bytes()).hexdigest() if Path(name).is_file() else None
    except (OSError, ValueError):
        return None


def _version(name: str) -> str | None:
    # To import it takes as long as a tenth of a short command.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
