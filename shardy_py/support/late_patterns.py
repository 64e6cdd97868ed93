"""Regular expressions that are compiled when they are first used, as most commands use few of them."""

from __future__ import annotations

import re
from typing import Any, AnyStr, Generic, cast


class _LatePattern(Generic[AnyStr]):
    """Stands for a compiled expression, whose methods it has.

    Attributes:
        pattern: The expression as text.
    """

    __slots__ = ("_compiled", "_flags", "pattern")

    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self.pattern: AnyStr = pattern
        self._flags = flags
        self._compiled: re.Pattern[AnyStr] | None = None

    def __getattr__(self, name: str) -> Any:
        compiled = self._compiled
        if compiled is None:
            compiled = self._compiled = re.compile(self.pattern, self._flags)
        return getattr(compiled, name)


def late_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what can be used as ``re.compile(pattern, flags)``, and is compiled at its first use.

    >>> late_pattern("[0-9]+").search("a12").group()
    '12'
    """
    return cast("re.Pattern[AnyStr]", _LatePattern(pattern, flags))
