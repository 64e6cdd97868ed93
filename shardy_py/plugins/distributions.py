"""Installed distributions and their entry points, read from the metadata that stands in directories.

Importing ``importlib.metadata`` and asking it takes as long as a tenth of a short command. It is the authority all the
same: archives, eggs, other finders, and metadata that is written in another way than installers do are left to it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Hashable, Iterator
from functools import lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from stat import S_ISDIR
from typing import Any

from shardy_py.support.identity import identity
from shardy_py.values import frozen

_METADATA = (".dist-info", ".egg-info", ".egg")
"""The endings of the entries of a directory that describe a distribution."""
_PLACE = re.compile(r"[\w.]+(:[\w.]+)?")
_HEADER = re.compile(r"^(Name|Version): *(\S+) *$", re.MULTILINE)


@frozen
class Distribution:
    """A distribution that is installed: its name and its version."""

    name: str
    version: str


@frozen
class EntryPoint:
    """An entry point: an object of a module that a distribution offers.

    Args:
        name: What the distribution calls it.
        value: ``module`` or ``module:attribute``.
        dist: The distribution.
    """

    name: str
    value: str
    dist: Distribution

    def load(self) -> Any:
        """Import the module, and return the object."""
        module, _, path = self.value.partition(":")
        loaded: Any = import_module(module)
        for part in filter(None, path.split(".")):
            loaded = getattr(loaded, part)
        return loaded


def entry_points(*, group: str) -> list[Any]:
    """Return the entry points of a group, as ``importlib.metadata.entry_points`` does.

    Args:
        group: The name of the group.
    """
    try:
        return [point for folder in _folders() for point in _points_in(folder, group)]
    except _UnusualError:
        from importlib import metadata

        return list(metadata.entry_points(group=group))


def installed_distributions() -> Hashable:
    """Return a value that changes when a distribution is installed, removed or replaced.

    It has what importlib.metadata looks at: the search path with the metadata directories in it, and the finders.
    """
    return tuple([_entry(path) for path in sys.path]), tuple(map(identity, sys.meta_path))


class _UnusualError(Exception):
    """Distributions, or their metadata, are not what directories of installers have."""


def _folders() -> Iterator[str]:
    """Generate the metadata directories of all distributions; of those with the same name the first counts."""
    if any(finder is not PathFinder and hasattr(finder, "find_distributions") for finder in sys.meta_path):
        raise _UnusualError
    seen: set[str] = set()
    for path in sys.path:
        match _entry(path):
            case place, tuple(found) if not place.lower().endswith(".egg"):
                for folder, _ in found:
                    name, ending = os.path.splitext(folder)
                    key = re.sub(r"[-_.]+", "-", name.partition("-")[0]).lower()
                    if ending == ".egg" or key in seen:
                        continue
                    if not key or ending not in _METADATA:
                        raise _UnusualError
                    seen.add(key)
                    yield os.path.join(place, folder)
            case str():
                pass
            case _:
                raise _UnusualError


def _points_in(folder: str, group: str) -> Iterator[EntryPoint]:
    """Generate the entry points of a group that a metadata directory has."""
    text = _text(folder, "entry_points.txt")
    if group not in text:
        return
    section, dist = "", None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line.strip("[]")
        elif section == group and line and not line.startswith("#"):
            name, _, value = map(str.strip, line.partition("="))
            if _PLACE.fullmatch(value) is None:
                raise _UnusualError
            dist = dist or _distribution(folder)
            yield EntryPoint(name, value, dist)


def _distribution(folder: str) -> Distribution:
    """Return the name and the version in a metadata directory."""
    headers = _HEADER.findall(_text(folder, "METADATA").partition("\n\n")[0])
    match sorted(headers):
        case [("Name", name), ("Version", version)]:
            return Distribution(name, version)
    raise _UnusualError


def _text(folder: str, file: str) -> str:
    """Return the text of a file of metadata, or nothing where it is missing."""
    try:
        with open(os.path.join(folder, file), encoding="utf-8") as stream:
            return stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeError):
        raise _UnusualError from None


def _entry(path: str) -> Any:
    """Return the metadata directories of an entry of the search path; the entry itself where nothing is there."""
    try:
        # A relative entry is another place wherever the process goes; the place it is in may be gone.
        folder = os.path.abspath(path)
        state = os.stat(folder)
    except OSError:
        return path
    return _metadata_in(folder, state.st_mtime_ns) if S_ISDIR(state.st_mode) else (folder, state.st_mtime_ns)


@lru_cache(maxsize=256)
def _metadata_in(folder: str, modified: int) -> Hashable:
    """Return the metadata directories of a directory; other files may come and go there without effect."""
    try:
        with os.scandir(folder) as entries:
            metadata = [
                (item.name, item.stat().st_mtime_ns) for item in entries if item.name.lower().endswith(_METADATA)
            ]
    except OSError:
        return folder, modified
    return folder, tuple(sorted(metadata))
