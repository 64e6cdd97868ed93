"""The numbers of a summary."""

from __future__ import annotations

from shardy_py.api.main_function import find_main
from shardy_py.api.summary import summarize
from tests.unit.api.programs import program, registry


def test_counts() -> None:
    """Each number counts what it says."""
    module = program()
    summary = summarize(module, find_main(module), registry())
    assert (summary.ops, summary.reshards) == (3, 0)
    assert (summary.values, summary.values_with_sharding, summary.values_sharded) == (5, 1, 1)
    assert summary.axes_used == (("a", 1), ("b", 0))
    assert summary.parameters == 2
    assert summary.parameter_bytes == (8 * 16 + 16 * 4) * 4
    assert summary.parameter_bytes_per_device == (4 * 16 + 16 * 4) * 4
