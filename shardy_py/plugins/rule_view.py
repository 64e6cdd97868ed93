"""The view of an op that a rule function gets, and the memory of rules by the contents of that view.

Ops of one name with the same types and attributes share a rule, so a rule that also depends on producers, users or
regions would be that of whichever op came first. A view shows none of these, and is made once per kind of op.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from typing import Any, NoReturn

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.ir.graph.attributes import DenseElements, RawAttribute, Unit, shared_key
from shardy_py.ir.graph.dynamic_sizes import with_stand_ins
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import OpaqueType, TensorType
from shardy_py.ir.interfaces.ops import OpFacts

_HINT = "give the op contextual=True, or a function of the op that returns what the rule reads there"


class _Outside:
    """An attribute that a view refuses, as equal ops do not share it.

    Args:
        words: What it is, for the error.
    """

    def __init__(self, words: str) -> None:
        self.words = words

    def __get__(self, view: _ValueView | OpView, class_: type) -> NoReturn:
        view.refuse(self.words)


class _ValueView(Value):
    """An operand or a result of an op, of which a rule reads the type only."""

    __slots__ = ("_is_result", "_number", "_view")

    id: Any = _Outside("the number in its program")
    uses: Any = _Outside("the users")

    def __init__(self, value: Value, view: OpView, number: int, *, is_result: bool, stand_ins: bool) -> None:
        self.type = with_stand_ins(value.type) if stand_ins else value.type
        self._number = number
        self._view = view
        self._is_result = is_result

    @property
    def owner(self) -> Any:  # type: ignore[override]
        """The op for a result; that of an operand lies outside."""
        return self._view if self._is_result else self.refuse("the producer")

    @property
    def index(self) -> int:  # type: ignore[override]
        """The number of a result; that of an operand among the results of its producer lies outside."""
        return self._number if self._is_result else self.refuse("the index at the producer")

    def refuse(self, words: str) -> NoReturn:
        """Refuse what is read of the value."""
        self._view.refuse(f"{words} of {self._name}")

    @property
    def _name(self) -> str:
        return f"{'result' if self._is_result else 'operand'} {self._number}"

    def __repr__(self) -> str:
        return f"<{self._name} of {self._view!r}: {self.type}>"


class OpView(Op):
    """An op as a rule function sees it: name, types, attributes and location.

    Args:
        op: The op.
        stand_ins: Whether dynamic sizes are shown as numbers, see `shardy_py.ir.graph.dynamic_sizes`.

    Attributes:
        reads: What the function read of what lies around the op.
    """

    __slots__ = ("_before", "_op", "_values", "reads")

    id: Any = _Outside("the number of the op in its program")
    handle: Any = _Outside("the op of the module behind the program")
    parent: Any = _Outside("the block around the op")
    regions: Any = _Outside("the regions of the op")
    program: Any = _Outside("the program around the op")
    prev: Any = _Outside("the op before this one")
    next: Any = _Outside("the op behind this one")
    scope: Any = _Outside("the scope of the op")

    def __init__(self, op: Op, *, stand_ins: bool = False) -> None:
        self._op = op
        self.reads: list[str] = []
        self.name = op.name
        self.attributes = op.attributes
        self.function_results = ()
        # One view per operand: whether two are the same value is not for a rule either.
        view = partial(_ValueView, view=self, stand_ins=stand_ins)
        self.operands = tuple([view(item, number=n, is_result=False) for n, item in enumerate(op.operands)])
        self.results = tuple([view(item, number=n, is_result=True) for n, item in enumerate(op.results)])
        self._values = (*self.operands, *self.results)
        self._before = self._state()

    def refuse(self, read: str) -> NoReturn:
        """Note what is read, and refuse it.

        Raises:
            RuleError: always.
        """
        self.reads.append(read)
        raise RuleError(reads_problem(read))

    @property
    def is_changed(self) -> bool:
        """True if the function changed the op, which it may only read."""
        return self._state() != self._before

    def _state(self) -> tuple[Any, ...]:
        types = [value.type for value in self._values]
        return self.name, self.operands, self.results, types, shared_key(self.attributes)

    @property
    def location(self) -> str:
        """The location of the op, for messages."""
        return self._op.location

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._op or (isinstance(other, OpView) and other._op is self._op)

    def __hash__(self) -> int:
        return hash(self._op)

    def __repr__(self) -> str:
        return repr(self._op)


def reads_problem(read: str) -> Diagnostic:
    """Return the problem of a rule function that read something around its op."""
    message = f"the rule function reads {read}, and ops that look the same would share its rule"
    return Diagnostic("rule-reads-context", message, hint=_HINT)


def viewed_op(op: Op) -> Op:
    """Return the op behind a view, for a frontend whose op classes have rules as methods; any other op as it is."""
    return op._op if isinstance(op, OpView) else op


MANY_RULES = 20_000
"""The limit on the rules of a memory; it is emptied before it has more."""

_PLAIN = frozenset((bool, int, float, str, RawAttribute, DenseElements, Unit, TensorType, OpaqueType))
"""The classes of attributes that mean the same in all programs: symbols, meshes and native constants do not."""


class RuleMemory(dict[Hashable, OpFacts]):
    """Facts of ops by their names, attributes and types, as values, or by themselves; threads may share it."""

    __slots__ = ()

    def keep(self, key: Hashable, facts: OpFacts) -> OpFacts:
        """Remember facts, and return those that are remembered: the first of several that come at once."""
        if len(self) >= MANY_RULES:
            self.clear()
        return self.setdefault(key, facts)


def look_key(kind: Hashable, attributes: Hashable | None, operands: int, types: Iterable[Hashable]) -> Hashable | None:
    """Return the key of an op in a `RuleMemory`, equal for equal ops of all programs.

    Args:
        kind: The name of the op, with what its rule reads around it.
        attributes: The `attributes_look` of its attributes; None for none, which has no key.
        operands: How many operands it has.
        types: The types of its operands and results.
    """
    return None if attributes is None else (kind, attributes, operands, *types)


def attributes_look(attributes: Mapping[str, Any]) -> Hashable | None:
    """Return attributes as a hashable value that tells 1 and True apart; None for attributes tied to their program."""
    parts: list[Hashable] = []
    for name, value in attributes.items():
        look = _look(value)
        if look is None:
            return None
        parts.append((name, look))
    return tuple(parts)


def _look(value: Any) -> Hashable | None:
    class_ = type(value)
    if class_ in _PLAIN:
        return (class_, value)
    if class_ is tuple or class_ is list:
        items = [_look(item) for item in value]
        return None if None in items else (tuple, *items)
    return attributes_look(value) if class_ is dict else None
