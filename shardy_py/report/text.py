"""Reports as plain text lines."""

from __future__ import annotations

from shardy_py.api.rules import OpRule

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def format_rule(rule: OpRule) -> str:
    """Return one op and its rule as a line."""
    what = str(rule.rule) if rule.rule is not None else "data-flow edges" if rule.data_flow else "no rule"
    place = f"{rule.location}  " if rule.location else ""
    return f"{place}{rule.op}  {what}"


def format_bytes(count: int) -> str:
    """Return a number of bytes with a unit.

    >>> format_bytes(512), format_bytes(1536), format_bytes(3 << 20)
    ('512 B', '1.5 KiB', '3.0 MiB')
    """
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"
