"""Registries of installed plugins: built once per process, and again when distributions or plugins change."""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable
from functools import lru_cache
from stat import S_ISDIR

from shardy_py.errors import PluginError
from shardy_py.ir.gc_pause import no_garbage_collection
from shardy_py.ir.interfaces import RuleOptions
from shardy_py.plugins.registry import DEFAULT_OPTIONS, Registry
from shardy_py.values import frozen

_METADATA = (".dist-info", ".egg-info", ".egg")
"""The endings of the entries of a directory that describe a distribution."""


def installed_registry(*, options: RuleOptions = DEFAULT_OPTIONS, skip_broken: bool = False) -> Registry:
    """Return `Registry.from_entry_points` of the installed plugins alone; the same object while they are the same.

    Args:
        options: The options of rule functions.
        skip_broken: Whether problems of plugins are recorded instead of raised.

    Raises:
        PluginError: a plugin is broken, or two define the same op.
    """
    return _build(installed_distributions(), options, skip_broken)


def given_registry(
    plugins: tuple[object, ...],
    *,
    blocked: tuple[str, ...] = (),
    options: RuleOptions = DEFAULT_OPTIONS,
    skip_broken: bool = False,
) -> Registry:
    """Return `Registry.from_entry_points` of the installed plugins and of others, one object while all are the same.

    The other plugins are asked each time, as an op may have been added to one of their dialects.

    Args:
        plugins: More plugins besides the installed ones.
        blocked: Names of plugins that are not imported.
        options: The rule options besides the op.
        skip_broken: Whether problems of plugins are recorded instead of raised.

    Raises:
        PluginError: a plugin is broken, or two define the same op.
    """
    from shardy_py.plugins.manager import contributions

    try:
        contributed = contributions(plugins)
    except PluginError:
        # Built without the cache, it says so in the way that the caller wants.
        return Registry.from_entry_points(plugins=plugins, blocked=blocked, options=options, skip_broken=skip_broken)
    given = _Given(plugins, contributed)
    return _build_given(installed_distributions(), given, blocked, options, skip_broken)


@frozen(eq=False)
class _Given:
    """Plugins with their contributions; equal where all are the same objects."""

    plugins: tuple[object, ...]
    contributed: tuple[object, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Given) and self._ids == other._ids

    def __hash__(self) -> int:
        return hash(self._ids)

    @property
    def _ids(self) -> tuple[int, ...]:
        return tuple(map(id, (*self.plugins, *self.contributed)))


def installed_distributions() -> Hashable:
    """Return a value that changes when a distribution is installed, removed or replaced.

    It has what importlib.metadata looks at: the search path with the metadata directories in it, and the finders.
    """
    return tuple([_entry(path) for path in sys.path]), tuple(map(id, sys.meta_path))


@lru_cache(maxsize=8)
def _build(distributions: Hashable, options: RuleOptions, skip_broken: bool) -> Registry:
    with no_garbage_collection(keep=True):
        return Registry.from_entry_points(options=options, skip_broken=skip_broken)


@lru_cache(maxsize=8)
def _build_given(
    distributions: Hashable, given: _Given, blocked: tuple[str, ...], options: RuleOptions, skip_broken: bool
) -> Registry:
    return Registry.from_entry_points(plugins=given.plugins, blocked=blocked, options=options, skip_broken=skip_broken)


def _entry(path: str) -> Hashable:
    try:
        # A relative entry is another place wherever the process goes; the place it is in may be gone.
        place = os.path.abspath(path)
        state = os.stat(place)
    except OSError:
        return path
    return _metadata_in(place, state.st_mtime_ns) if S_ISDIR(state.st_mode) else (place, state.st_mtime_ns)


@lru_cache(maxsize=256)
def _metadata_in(place: str, modified: int) -> Hashable:
    """Return the metadata directories of a directory; other files may come and go there without effect."""
    try:
        with os.scandir(place) as entries:
            found = [(item.name, item.stat().st_mtime_ns) for item in entries if item.name.endswith(_METADATA)]
    except OSError:
        return place, modified
    return place, tuple(sorted(found))
