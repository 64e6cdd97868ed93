"""Reports as plain text lines."""

from __future__ import annotations

from shardy_py.api.rules import OpRule


def format_rule(rule: OpRule) -> str:
    """Return one op and its rule as a line."""
    what = str(rule.rule) if rule.rule is not None else "data-flow edges" if rule.data_flow else "no rule"
    place = f"{rule.location}  " if rule.location else ""
    return f"{place}{rule.op}  {what}"
