"""Names of the ops of func and sdy, and lists of ops by name that hold while other ops come and go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Generic, Protocol, TypeVar, cast

from shardy_py.support.identity import identity

FUNCTION = "func.func"
CALL = "func.call"
RETURN = "func.return"

MESH = "sdy.mesh"
CONSTANT = "sdy.constant"
CONSTRAINT = "sdy.sharding_constraint"
RESHARD = "sdy.reshard"
PROPAGATION_BARRIER = "sdy.propagation_barrier"
SHARDING_GROUP = "sdy.sharding_group"
MANUAL_COMPUTATION = "sdy.manual_computation"
NAMED_COMPUTATION = "sdy.named_computation"
REGION_RETURN = "sdy.return"
DATA_FLOW_EDGE = "sdy.data_flow_edge"
FUNC_DATA_FLOW_EDGE = "sdy.func_data_flow_edge"

ALL_GATHER = "sdy.all_gather"
ALL_REDUCE = "sdy.all_reduce"
REDUCE_SCATTER = "sdy.reduce_scatter"
ALL_SLICE = "sdy.all_slice"
ALL_TO_ALL = "sdy.all_to_all"
COLLECTIVE_PERMUTE = "sdy.collective_permute"
SHARDED_TO_UNREDUCED = "sdy.sharded_to_unreduced"
REPLICATED_TO_UNREDUCED = "sdy.replicated_to_unreduced"


class NamedOp(Protocol):
    """The parts of an op that the index reads."""

    def walk(self) -> Iterator[Any]:
        """Iterate over the op and all ops inside, each before those in its regions."""
        ...

    @property
    def name(self) -> str:
        """The full name."""
        ...

    @property
    def parent(self) -> object | None:
        """The block of the op, or None."""
        ...


_Op = TypeVar("_Op", bound=NamedOp)
_Derived = TypeVar("_Derived")
_ALL: frozenset[str] = frozenset()
"""The key of the list of all ops."""


class OpIndex(Generic[_Op]):
    """Ops of one program by name, each before those in its regions.

    Most passes are about a few ops. A list is kept until an op of its names enters or leaves a block, so that one walk
    serves all passes up to the next that changes something about them. The graph reports each op that enters or leaves.

    Args:
        walk: Returns all ops of the program as a new list, each before those in its regions.
    """

    __slots__ = ("_appended", "_derived", "_entered", "_is_stale", "_left", "_lists", "_renamed", "_walk")

    def __init__(self, walk: Callable[[], list[_Op]]) -> None:
        self._walk = walk
        self._lists: dict[frozenset[str], list[_Op]] = {}
        self._derived: dict[object, tuple[list[_Op], object]] = {}
        self._entered: set[str] = set()
        self._left: set[str] = set()
        self._renamed: set[str] = set()
        self._appended: list[_Op] = []
        self._is_stale = False

    def start(self, ops: list[_Op]) -> None:
        """Start with the ops of a program that was just read, each before those in its regions."""
        self._lists = {_ALL: ops}
        self._forget_changes()

    def enter(self, name: str) -> None:
        """Note that an op without regions entered a block."""
        self._entered.add(name)

    def leave(self, name: str) -> None:
        """Note that an op without regions left its block."""
        self._left.add(name)

    def append(self, op: _Op) -> None:
        """Note that an op with regions, such as the copy of a function, came behind all others."""
        self._appended.append(op)

    def rename(self, before: str, after: str) -> None:
        """Note that an op has another name; the list of all ops holds."""
        self._renamed.add(before)
        self._renamed.add(after)

    def invalidate(self) -> None:
        """Note that regions moved: any op may have been added, removed or reordered."""
        self._is_stale = True

    def all_ops(self) -> list[_Op]:
        """Return all ops."""
        self._update()
        return self._all_ops()

    def ops_among(self, names: Collection[str]) -> list[_Op]:
        """Return the ops with one of some names, of which there is at least one."""
        self._update()
        key = frozenset(names)
        ops = self._lists.get(key)
        if ops is None:
            ops = self._lists[key] = self._select(key)
        return ops

    def _select(self, names: frozenset[str]) -> list[_Op]:
        if len(names) > 1:
            return [op for op in self._all_ops() if op.name in names]
        (wanted,) = names
        return [op for op in self._all_ops() if op.name == wanted]

    def derived(self, names: Collection[str], derive: Callable[[list[_Op]], _Derived]) -> _Derived:
        """Return the value that a function derives from `ops_among`; it is cached as long as the list is valid.

        Args:
            names: The names.
            derive: Looks at the ops and at what they are in, but not at their attributes, which may change meanwhile.
        """
        ops = self.ops_among(names)
        known = self._derived.get(derive)
        # A list never changes, it is replaced.
        if known is None or known[0] is not ops:
            known = self._derived[derive] = ops, derive(ops)
        return cast(_Derived, known[1])

    def drop(self, gone: Collection[_Op], unlink: Callable[[], None]) -> None:
        """Unlink ops with all that is inside them; the lists of the others hold, as none of them moves.

        Args:
            gone: The ops, and all ops inside them.
            unlink: Takes them out of their blocks.
        """
        self._update()
        unlink()
        self._forget_changes()
        ids = set(map(identity, gone))
        for names, ops in self._lists.items():
            self._lists[names] = [op for op in ops if identity(op) not in ids]

    def _forget_changes(self) -> None:
        self._entered.clear()
        self._left.clear()
        self._renamed.clear()
        self._appended.clear()
        self._is_stale = False

    def _all_ops(self) -> list[_Op]:
        ops = self._lists.get(_ALL)
        if ops is None:
            ops = self._lists[_ALL] = self._walk()
        return ops

    def _update(self) -> None:
        """Drop invalid lists; add the ops behind all others to the rest, and remove those that left."""
        lists, entered, left = self._lists, self._entered, self._left
        if self._renamed:
            for names in [names for names in lists if not names.isdisjoint(self._renamed)]:
                del lists[names]
            self._renamed.clear()
        if self._is_stale:
            lists.clear()
            self._appended.clear()
            self._is_stale = False
        elif entered:
            # Ops without regions came: that changes nothing about those of other names, nor their order.
            for names in [names for names in lists if not names or not names.isdisjoint(entered)]:
                del lists[names]
        if self._appended:
            ops = [inner for op in self._appended for inner in op.walk()] if lists else []
            for names in lists:
                lists[names] = [*lists[names], *[op for op in ops if not names or op.name in names]]
            self._appended.clear()
        if left:
            for names in [names for names in lists if not names or not names.isdisjoint(left)]:
                lists[names] = [op for op in lists[names] if op.parent is not None]
            left.clear()
        if entered:
            entered.clear()
