"""Registries of installed plugins: built once per process, and again when distributions or plugins change."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from shardy_py.errors import PluginError
from shardy_py.ir.interfaces.ops import RuleOptions
from shardy_py.plugins.distributions import installed_distributions
from shardy_py.plugins.registry import DEFAULT_OPTIONS, Registry
from shardy_py.support.gc_pause import no_garbage_collection
from shardy_py.support.identity import identity
from shardy_py.values import frozen

_FRAMEWORK = ("builtin", "func", "sdy")
"""The dialects whose ops stand around those of all others."""


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
    """Return the cached `Registry.from_entry_points` of the installed plugins and of others.

    The other plugins are asked each time, as an op may have been added to one of their dialects. Lists of plugins that
    contribute the same, in any order, have one registry.

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
        contributed = tuple(map(contributions, plugins))
    except PluginError:
        # Built without the cache, it says so in the way that the caller wants.
        return Registry.from_entry_points(plugins=plugins, blocked=blocked, options=options, skip_broken=skip_broken)
    more_plugins = _Given(plugins, contributed)
    return _build_given(installed_distributions(), more_plugins, blocked, options, skip_broken)


def with_framework_dialects(registry: Registry) -> Registry:
    """Return a registry of given dialects with the ops of `func` and `sdy`, which programs of any dialect consist of.

    Passes make such ops and read the shardings in them. A definition that the registry has itself stays; one that was
    built from the installed plugins stays as it is.

    Args:
        registry: The registry of a caller.

    Raises:
        PluginError: an installed plugin is broken.
    """
    return registry if registry.plugins else registry.with_dialects(installed_registry(skip_broken=True), _FRAMEWORK)


@frozen(eq=False)
class _Given:
    """Plugins with their names and contributions; equal where these are the same, in any order."""

    plugins: tuple[object, ...]
    contributed: tuple[tuple[str, tuple[object, ...]], ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Given) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return tuple(sorted((name, tuple(map(identity, objects))) for name, objects in self.contributed))


@lru_cache(maxsize=8)
def _build(distributions: Hashable, options: RuleOptions, skip_broken: bool) -> Registry:
    with no_garbage_collection(keep=True):
        return Registry.from_entry_points(options=options, skip_broken=skip_broken)


@lru_cache(maxsize=8)
def _build_given(
    distributions: Hashable, more_plugins: _Given, blocked: tuple[str, ...], options: RuleOptions, skip_broken: bool
) -> Registry:
    return Registry.from_entry_points(
        plugins=more_plugins.plugins, blocked=blocked, options=options, skip_broken=skip_broken
    )
