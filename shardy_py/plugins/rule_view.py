"""The view of an op that a rule function gets: what lies around the op cannot be read there.

Ops of one name with the same types and attributes share a rule, so a rule that also depends on producers, users or
regions would be that of whichever op came first. A view is made once per kind of op, when its rule is.
"""

from __future__ import annotations

from typing import Any, NoReturn

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.ir.attributes import shared_key
from shardy_py.ir.graph import Op, Value

_HINT = "give the op contextual=True, or a function of the op that returns what the rule reads there"


class _ValueView(Value):
    """An operand or a result of an op, of which a rule reads the type only."""

    __slots__ = ("_name", "_view")

    def __init__(self, value: Value, view: OpView, name: str) -> None:
        self.id = value.id
        self.type = value.type
        self.index = value.index
        self._view = view
        self._name = name

    @property
    def owner(self) -> Any:
        """The op for a result; that of an operand lies outside."""
        if self._name.startswith("result"):
            return self._view
        self._view.refuse(f"the producer of {self._name}")

    @property
    def uses(self) -> Any:
        """The users, which lie outside."""
        self._view.refuse(f"the users of {self._name}")

    def __repr__(self) -> str:
        return f"<{self._name} of {self._view!r}: {self.type}>"


class OpView(Op):
    """An op as a rule function sees it: name, types, attributes and location.

    Attributes:
        reads: What the function read of what lies around the op.
    """

    __slots__ = ("_before", "_op", "_values", "reads")

    def __init__(self, op: Op) -> None:
        self._op = op
        self.reads: list[str] = []
        self.id = op.id
        self.name = op.name
        self.attributes = op.attributes
        self.handle = op.handle
        self.function_results = ()
        # One view per operand: whether two are the same value is not for a rule either.
        self.operands = tuple([_ValueView(value, self, f"operand {n}") for n, value in enumerate(op.operands)])
        self.results = tuple([_ValueView(value, self, f"result {n}") for n, value in enumerate(op.results)])
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
        """Whether the function changed what it should look at only."""
        return self._state() != self._before

    def _state(self) -> tuple[Any, ...]:
        types = [value.type for value in self._values]
        return self.name, self.operands, self.results, types, shared_key(self.attributes)

    @property
    def location(self) -> str:
        """The location of the op, for messages."""
        return self._op.location

    @property
    def parent(self) -> Any:
        """The block of the op, which lies outside."""
        self.refuse("the block around the op")

    @property
    def regions(self) -> Any:
        """The regions, which are no part of what ops of one kind share."""
        self.refuse("the regions of the op")

    @property
    def program(self) -> Any:
        """The program, which lies outside."""
        self.refuse("the program around the op")

    @property
    def prev(self) -> Any:
        """The op before, which lies outside."""
        self.refuse("the op before this one")

    @property
    def next(self) -> Any:
        """The op behind, which lies outside."""
        self.refuse("the op behind this one")

    @property
    def scope(self) -> str:
        """The name of the source location, which differs between ops of one kind."""
        self.refuse("the scope of the op")

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._op or (isinstance(other, OpView) and other._op is self._op)

    def __hash__(self) -> int:
        return hash(self._op)


def reads_problem(read: str) -> Diagnostic:
    """Return the problem of a rule function that read something around its op."""
    message = f"the rule function reads {read}, and ops that look the same would share its rule"
    return Diagnostic("rule-reads-context", message, hint=_HINT)
