"""Places in the source of a program, short enough for a line."""

from __future__ import annotations

import re

_FOLDERS = re.compile(r'[^\s"(]*[/\\](?=[^\s/\\"(]+:\d+)')


def short_place(location: str) -> str:
    """Return a location with the names of files in the place of their paths; `find_step` accepts it.

    >>> short_place("/home/user/model.py:12:8")
    'model.py:12:8'
    >>> short_place("the loss")
    'the loss'
    """
    return _FOLDERS.sub("", location)


def at_place(location: str) -> str:
    """Return `` at model.py:12:8``, and "" for no location.

    >>> at_place("/home/user/model.py:12:8"), at_place("")
    (' at model.py:12:8', '')
    """
    return f" at {short_place(location)}" if location else ""
