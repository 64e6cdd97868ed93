"""Pauses of the garbage collector."""

from __future__ import annotations

import gc
import weakref

import pytest

from shardy_py.support import gc_pause
from shardy_py.support.gc_pause import no_garbage_collection, resume_garbage_collection

needs_generations = pytest.mark.skipif(
    not gc_pause.HAS_GENERATIONS, reason="the collector of free-threaded builds has no generations"
)


class Node:
    """An object that refers to itself, which only the collector can find."""

    def __init__(self):
        self.me = self


@pytest.fixture
def collections():
    """The generations that are collected, as it happens; the collector is on and has nothing to do."""
    gc.collect()
    gc.enable()
    collected = []

    def note(phase, info):
        if phase == "start":
            collected.append(info["generation"])

    gc.callbacks.append(note)
    yield collected
    gc.callbacks.remove(note)
    gc.enable()


def test_nothing_is_collected_during_a_pause(collections):
    """However much is made, the collector waits for the end of the pause."""
    with no_garbage_collection():
        nodes = [Node() for _ in range(5000)]
        assert collections == []
    assert len(nodes) == 5000
    assert gc.isenabled()


@needs_generations
@pytest.mark.parametrize("keep", [False, True])
def test_what_is_kept_is_not_looked_at_after_the_pause(collections, keep):
    """The end of a pause brings a look at all that was made, unless it is to be kept."""
    with no_garbage_collection(keep=keep):
        nodes = [Node() for _ in range(5000)]
    more = [Node() for _ in range(10)]
    assert bool(collections) is not keep
    assert len(nodes) + len(more) == 5010


@needs_generations
def test_what_is_kept_is_old(collections):
    """Kept objects belong to the oldest generation, where only full collections look."""
    with no_garbage_collection(keep=True):
        node = Node()
    assert any(item is node for item in gc.get_objects(generation=2))


@needs_generations
def test_a_later_pause_begins_with_a_collection_once_there_is_enough(collections, monkeypatch):
    """Garbage of earlier runs does not pile up: it is found as soon as so many objects grew old unseen."""
    monkeypatch.setattr(gc_pause, "OLD_OBJECTS", 3000)
    with no_garbage_collection(keep=True):
        nodes = [Node() for _ in range(2000)]
    gone = weakref.ref(nodes[0])
    del nodes
    with no_garbage_collection(keep=True):
        more = [Node() for _ in range(2000)]
        assert gone() is not None
    with no_garbage_collection(keep=True):
        assert gone() is None
    assert collections == [2]
    assert len(more) == 2000


def test_nothing_is_frozen_where_objects_do_not_grow_old(collections, monkeypatch):
    """To freeze would be a walk over all objects while other threads wait, for no use."""
    monkeypatch.setattr(gc_pause, "HAS_GENERATIONS", False)
    for name in ("freeze", "unfreeze", "get_freeze_count"):
        monkeypatch.setattr(gc, name, lambda: pytest.fail("the heap is walked over"))
    with no_garbage_collection(keep=True):
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    resume_garbage_collection()
    assert gc.isenabled()


@needs_generations
def test_what_python_froze_is_not_the_users(collections, monkeypatch):
    """Python 3.12 begins with some frozen objects of its own, and runs grow old there as they do elsewhere."""
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 400)
    with no_garbage_collection(keep=True):
        node = Node()
    assert any(item is node for item in gc.get_objects(generation=2))
    gc.disable()
    late = Node()
    resume_garbage_collection()
    assert any(item is late for item in gc.get_objects(generation=2))


def test_objects_that_the_user_froze_stay_frozen(collections):
    """Growing old makes use of the permanent generation, so it is left out where somebody else does."""
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with no_garbage_collection(keep=True):
            nodes = [Node() for _ in range(10)]
        assert gc.get_freeze_count() == frozen
        assert len(nodes) == 10
    finally:
        gc.unfreeze()


def test_a_collector_that_is_off_stays_off(collections):
    """A pause inside another one, or where the user wants no collections, changes nothing."""
    gc.disable()
    with no_garbage_collection(keep=True):
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_the_collector_is_on_again_after_an_error(collections):
    """An error ends the pause like anything else."""
    with pytest.raises(ValueError, match="broken"), no_garbage_collection(keep=True):
        raise ValueError("broken")
    assert gc.isenabled()
