"""A pause of the garbage collector while graphs are built and rewritten."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

HAS_GENERATIONS = "free-threading" not in sys.version
"""A fact about the interpreter: objects grow old.

The collector of free-threaded builds always looks at all of them, and freezing walks over all objects of the process
while every other thread stands still.
"""
OLD_OBJECTS = 500_000
"""The number of objects that may become old before the next run begins with a full collection; about 100 MB."""
FROZEN_BY_PYTHON = 1_000
"""More objects than an interpreter freezes for itself, which 3.12 does with some 400 of its 5,000 first objects."""


class _GrownOld:
    """Number of objects that became old since the last full collection without being examined.

    Attributes:
        objects: The number of these objects.
        collections: The number of full collections before.
    """

    objects = 0
    collections = 0


class _Pause:
    """A pause, as a context and as a decorator; see `no_garbage_collection`."""

    __slots__ = ("_has_begun", "_keep")

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self._has_begun = False

    def __enter__(self) -> None:
        if not gc.isenabled():
            return
        self._keep = self._keep and _may_freeze()
        if self._keep:
            _collect_old()
        gc.disable()
        self._has_begun = True

    def __exit__(self, *error: object) -> None:
        if not self._has_begun:
            return
        if self._keep:
            _grow_old()
        gc.enable()

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        keep = self._keep

        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with _Pause(keep=keep):
                return function(*args, **kwargs)

        return call


def no_garbage_collection(*, keep: bool = False) -> _Pause:
    """Pause the cyclic garbage collector.

    A graph is one large cycle that stays alive, but the collector would look at all of it again and again while it
    grows, and once more when the pause ends.

    Args:
        keep: Whether what is made outlives the pause. It then counts as old at once, without that last look, which
            costs a tenth of a run; a later run begins with a full collection once there is enough of it. Without
            effect where the collector has no generations.
    """
    return _Pause(keep=keep)


def resume_garbage_collection() -> None:
    """Turn the collector on after a pause; all objects created meanwhile count as old."""
    if not gc.isenabled():
        if _may_freeze():
            _grow_old()
        gc.enable()


def _may_freeze() -> bool:
    """Return whether objects may be frozen for a moment; those that the user froze would be released with ours."""
    return HAS_GENERATIONS and gc.get_freeze_count() < FROZEN_BY_PYTHON


def _collect_old() -> None:
    """Collect the garbage of earlier runs if it may be much."""
    collections = gc.get_stats()[-1]["collections"]
    if collections != _GrownOld.collections:
        _GrownOld.objects, _GrownOld.collections = 0, collections
    if _GrownOld.objects > OLD_OBJECTS:
        gc.collect()


def _grow_old() -> None:
    """Move every object to the oldest generation, as if it had survived collections."""
    _GrownOld.objects += gc.get_count()[0]
    gc.freeze()
    gc.unfreeze()
