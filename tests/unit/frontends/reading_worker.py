"""A reader that runs the code in a file, as one would that an attack has taken over."""

from __future__ import annotations

from typing import Any

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.frontends.isolation import answer_reader


def main() -> None:
    """Read the file of a test."""
    answer_reader(_prepare, _read)


def _prepare(data: bytes) -> None:
    import pickle
    import socket
    import subprocess  # noqa: F401

    pickle.loads(pickle.dumps(socket.AF_INET))


def _read(data: bytes, name: str) -> bytes:
    def refuse(message: str) -> None:
        raise ParseError(Diagnostic("refused", message, name))

    names: dict[str, Any] = {"answer": b"", "refuse": refuse}
    exec(data, names)
    answer: bytes = names["answer"]
    return answer
