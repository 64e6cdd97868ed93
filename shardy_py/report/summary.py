"""The report on a propagation as a few lines of text, with a table where ops have no rule; and a rule as one line."""

from __future__ import annotations

import re
import sys
from typing import IO, TYPE_CHECKING

from shardy_py.api.result import Result
from shardy_py.api.summary import split_communications
from shardy_py.report.terminal_text import terminal_lines
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.unknown_size import is_derived
from shardy_py.support.texts import format_bytes

if TYPE_CHECKING:
    from shardy_py.api.rules import OpRule


def print_report(result: Result, *, text: str | None = None, file: IO[str] | None = None) -> None:
    """Print the summary, and the ops without a rule where there are any.

    Args:
        result: The result of a propagation.
        text: The module as it was written, where that was in another form than its own.
        file: Where to; stdout by default.
    """
    # Written by hand: rich takes longer to import than a small program to propagate.
    stream = file or sys.stdout
    print(terminal_lines(summary_text(result, text), stream), file=stream)
    if not result.coverage.is_complete:
        from shardy_py.report.tables import print_missing

        print_missing(result.coverage, file=file)


def summary_text(result: Result, text: str | None = None) -> str:
    """Return the numbers of a propagation as lines, the numbers one below the other.

    Args:
        result: The result of a propagation.
        text: The module as it was written, where that was in another form than its own.
    """
    summary, coverage = result.summary, result.coverage
    communications = split_communications(result.communications, result.program, text)
    rows = [
        ("ops", f"{summary.ops}"),
        ("tensors", f"{summary.values}"),
        ("  with a sharding", f"{summary.values_with_sharding}"),
        ("  sharded along an axis", f"{summary.values_sharded}"),
        *((f'  along "{name}"', f"{count}") for name, count in summary.axes_used),
        ("communications", f"{communications.total}"),
        *((f"  {name}", f"{count}") for name, count in communications.written.items()),
        *((f"  {_words(kind)}, by a partitioner", f"{count}") for kind, count in communications.left.items()),
        ("parameter bytes", format_bytes(summary.parameter_bytes)),
        ("  per device", format_bytes(summary.parameter_bytes_per_device)),
        ("ops with a rule", f"{coverage.covered} of {coverage.ops}"),
        *([("given shardings reduced", f"{summary.shardings_reduced}")] if summary.shardings_reduced else ()),
    ]
    width, digits = (max(map(len, column)) for column in zip(*rows, strict=True))
    lines = [f"  {name:<{width}}   {number:>{digits}}" for name, number in rows]
    return "\n".join(["Propagated", "", *lines, ""])


def _words(kind: str) -> str:
    """Return a kind of communication in words: ``all-reduce``."""
    return kind.replace("_", "-")


def rule_text(rule: OpShardingRule) -> str:
    """Return the text of a rule with ``?`` for the sizes of factors that are not known."""
    return re.sub(r"=(\d+)", lambda match: "=?" if is_derived(int(match[1])) else match[0], str(rule))


def format_rule(rule: OpRule) -> str:
    """Return one op and its rule as a line."""
    what = rule_text(rule.rule) if rule.rule is not None else "data-flow edges" if rule.data_flow else "no rule"
    place = f"{rule.location}  " if rule.location else ""
    return f"{place}{rule.op}  {what}"
