"""Descriptions of processes that died."""

from __future__ import annotations

import pytest

from shardy_py.support.processes.crashes import describe_crash, find_cause, name_exit


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [
        ("", ""),
        ("a note\nLLVM ERROR: out of memory\nStack dump:\n0. Program", "LLVM ERROR: out of memory"),
        ("Traceback (most recent call last):\n  File\nKeyError: 'a'\n", "KeyError: 'a'"),
        ("Traceback (most recent call last):\n  File\nMemoryError\n", "MemoryError"),
        (
            "KeyError: 1\nDuring handling\njax.errors.JaxRuntimeError: INTERNAL: x\n-----\n",
            "jax.errors.JaxRuntimeError: INTERNAL: x",
        ),
        ("first\nlast\n\n", "last"),
    ],
)
def test_the_cause_is_a_whole_line(stderr: str, expected: str) -> None:
    """A failed check comes before an exception, an exception before the last line."""
    assert find_cause(stderr) == expected


def test_lines_without_an_end_are_cut() -> None:
    """Some libraries print the whole module."""
    assert len(find_cause("Check failed: " + "x" * 100_000)) < 2100


def test_ends_have_names() -> None:
    """A signal is called by its name where it has one."""
    assert (name_exit(-9), name_exit(-1000), name_exit(3)) == ("SIGKILL", "signal 1000", "exit code 3")
    assert describe_crash(1, "") == "the process died (exit code 1)"
