"""A worker that runs the Python code of a request, and answers with what is then called `answer`."""

from __future__ import annotations

from shardy_py.support.processes.serve import ShowStep, serve


def main() -> None:
    """Answer the requests of a test."""
    serve(_answer)


def _answer(request: bytes, show: ShowStep) -> bytes:
    names = {"show": show, "answer": b""}
    exec(request, names)
    answer = names["answer"]
    assert isinstance(answer, bytes)
    return answer
