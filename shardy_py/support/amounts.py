"""Amounts as short texts: bytes, counts and times with units."""

from __future__ import annotations

_PREFIXES = ("", "k", "M", "G", "T", "P")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_TIMES = ((1e9, "ns"), (1e6, "us"), (1e3, "ms"), (1.0, "s"))


def format_bytes(count: int) -> str:
    """Return a number of bytes with a unit.

    >>> format_bytes(512), format_bytes(1536), format_bytes(3 << 20)
    ('512 B', '1.5 KiB', '3.0 MiB')
    """
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def format_count(count: float) -> str:
    """Return a large number with a prefix.

    >>> format_count(12), format_count(60.5e3), format_count(3.2e12)
    ('12', '60.5 k', '3.20 T')
    """
    size, prefix = count, 0
    while size >= 1000 and prefix < len(_PREFIXES) - 1:
        size, prefix = size / 1000, prefix + 1
    return f"{size:g}" if prefix == 0 else f"{size:.{2 if size < 10 else 1}f} {_PREFIXES[prefix]}"


def format_seconds(seconds: float) -> str:
    """Return a time with a unit.

    >>> format_seconds(0), format_seconds(2.5e-6), format_seconds(0.0421), format_seconds(3)
    ('0 s', '2.50 us', '42.1 ms', '3.00 s')
    """
    if not seconds:
        return "0 s"
    factor, unit = next(((f, u) for f, u in _TIMES if seconds * f < 1000), _TIMES[-1])
    amount = seconds * factor
    return f"{amount:.{2 if amount < 10 else 1 if amount < 100 else 0}f} {unit}"
