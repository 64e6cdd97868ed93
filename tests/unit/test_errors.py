"""Errors are values."""

import pickle

import pytest

from shardy_py.errors import Diagnostic, OptionError, ShardyError


@pytest.mark.parametrize("class_", [ShardyError, OptionError])
def test_errors_survive_pickling(class_: type[ShardyError]) -> None:
    """An error that came from another process has its class, its text and its diagnostics."""
    error = class_(Diagnostic("a", "first", "file:1", hint="do"), Diagnostic("b", "second"))
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is class_
    assert found.diagnostics == error.diagnostics
    assert str(found) == str(error)
