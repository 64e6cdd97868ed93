"""Errors are values."""

import pickle

import pytest

from shardy_py.errors import Diagnostic, OptionError, ShardyError, as_warnings


@pytest.mark.parametrize("class_", [ShardyError, OptionError])
def test_errors_survive_pickling(class_: type[ShardyError]) -> None:
    """An error that came from another process has its class, its text and its diagnostics."""
    error = class_(Diagnostic("a", "first", "file:1", hint="do"), Diagnostic("b", "second"))
    actual = pickle.loads(pickle.dumps(error))
    assert type(actual) is class_
    assert actual.diagnostics == error.diagnostics
    assert str(actual) == str(error)


def test_a_warning_says_that_it_is_one() -> None:
    """The text of a warning has the word; otherwise it is the same diagnostic."""
    item = Diagnostic("a", "first")
    (warning,) = as_warnings([item])
    assert str(warning) == "warning: first [a]"
    assert warning == item
    assert pickle.loads(pickle.dumps(warning)).severity == "warning"
