"""Places of a program where a user can constrain tensors: a line of the source, with all tensors that it makes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardy_py.cost.advice.gradients import TRANSPOSED, Gradients
from shardy_py.cost.session import Session
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.ops import Broadcast, ConstantLike
from shardy_py.propagation.problem import Problem
from shardy_py.trace.labels import Labels, short_place
from shardy_py.values import frozen

_NUMBER = re.compile(r"\d+")
_COLUMN = re.compile(r":\d+:\d+$")


@frozen
class SourceLineTensors:
    """Tensors that one line of the source makes: those of all layers, if the line is that of a layer.

    Args:
        slots: Their slots.
        values: The ids of their values in the program as it was given.
        names: Their names.
        op: The name of the op that makes them.
        type: Their type.
        location: The place in the source, or "".
        gradients: The slots of their gradients, which a constraint in the source shards, too.
        gradient_values: The ids of these in the program as it was given.
        gradient_names: Their names.
    """

    slots: tuple[int, ...]
    values: tuple[int, ...]
    names: tuple[str, ...]
    op: str
    type: TensorType
    location: str = ""
    gradients: tuple[int, ...] = ()
    gradient_values: tuple[int, ...] = ()
    gradient_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = f" and {len(self.names) - 1} more" if len(self.names) > 1 else ""
        at = f" at {short_place(self.location)}" if self.location else ""
        return f"{self.op} {self.names[0]}{more} ({self.type}){at}"


def find_places(session: Session, labels: Labels) -> dict[int, SourceLineTensors]:
    """Return the place of every slot that a user can constrain.

    Constants, and tensors with an annotation, are left out. So are tensors that JAX makes by transposing others, those
    that functions of a library make, and operands that are broadcast within an op: no line of the user's stands for
    them alone. An expression that makes tensors of several types, such as one that runs for all weights of a tree, is
    none either: what a user writes there constrains all of them.

    Args:
        session: The session; it must keep the names of the program that was given.
        labels: The names of values and ops.
    """
    groups: dict[object, list[tuple[int, Value]]] = {}
    for slot, value in _tensors(session):
        groups.setdefault(_key(value), []).append((slot, value))
    input_ids, gradients = _input_value_ids(session), Gradients.of(session.problem)
    places: dict[int, SourceLineTensors] = {}
    for members in groups.values():
        members = _members_of_one_type(members)
        ids = [input_ids.get(slot) for slot, _ in members]
        known_ids = tuple(dict.fromkeys(number for number in ids if number is not None))
        slots = tuple(slot for slot, _ in members)
        # A tensor that is not in the program as it was given cannot be constrained there.
        if not known_ids or None in ids:
            continue
        first = members[0][1]
        names = tuple(dict.fromkeys(labels.printed(slot) for slot in slots))
        assert isinstance(first.type, TensorType)
        behind = tuple(dict.fromkeys(slot for _, value in members for slot in gradients.slots_of(value)))
        behind = tuple(slot for slot in behind if slot in input_ids and slot not in slots)
        place = SourceLineTensors(
            slots,
            known_ids,
            names,
            first.owning_op.name,
            first.type,
            first.owning_op.location,
            behind,
            tuple(dict.fromkeys(input_ids[slot] for slot in behind)),
            tuple(dict.fromkeys(labels.printed(slot) for slot in behind)),
        )
        places.update(dict.fromkeys(slots, place))
    return places


def _members_of_one_type(members: list[tuple[int, Value]]) -> list[tuple[int, Value]]:
    """Return the tensors that an expression returns; none where they have several types.

    What only the backward pass reads may be what an expression keeps for it. It is one that the expression returns if
    the same op makes it.
    """
    read = [value for _, value in members if any(TRANSPOSED not in user.scope for user in value.users)]
    returned = {_producer(value) for value in read or [value for _, value in members]}
    if len({(kind, index) for _, kind, index in returned}) > 1:
        return []
    return [(slot, value) for slot, value in members if _producer(value) in returned]


def _producer(value: Value) -> tuple[str, str, int]:
    return value.owning_op.name, str(value.type), value.index


def _tensors(session: Session) -> Iterator[tuple[int, Value]]:
    problem, registry = session.problem, session.registry
    has_locations = any(op.location for op in problem.step_ops)
    for slot, value in enumerate(problem.slot_values):
        op = value.defining_op
        if op is None or problem.initial[slot] or op.name.startswith(("sdy.", "func.")):
            continue
        if not isinstance(value.type, TensorType) or not value.type.rank or None in value.type.shape:
            continue
        if registry.has_trait(op, ConstantLike) or (has_locations and not op.location):
            continue
        if _is_part_of_an_expression(value):
            continue
        if op.operands and TRANSPOSED not in op.scope and not (registry.has_trait(op, Broadcast) and _is_implied(op)):
            yield slot, value


def _is_part_of_an_expression(value: Value) -> bool:
    """Return whether an op of the same expression reads a value, which then has no name in the source."""
    op = value.owning_op
    return bool(op.location) and any(
        user.location == op.location and TRANSPOSED not in user.scope and user.parent_op is op.parent_op
        for user, _ in value.uses
    )


def _is_implied(op: Op) -> bool:
    """Return whether an op is a part of another one of JAX, such as the broadcast of a number that is added."""
    return bool(op.scope) and op.scope.rpartition("/")[2] != op.name.rpartition(".")[2]


def _key(value: Value) -> object:
    """Return what tensors of one expression have in common; without the column of an expression, more has to be equal.

    Without a location each tensor stands alone.
    """
    op = value.owning_op
    if not op.location:
        return value.id
    if _COLUMN.search(op.location):
        return op.location
    return op.location, op.name, str(value.type), value.index, _NUMBER.sub("", op.scope), _function(op)


def _function(op: Op) -> str:
    """Return the name of the function that an op was written in; copies of a function have numbers behind it."""
    ancestor: Op | None = op
    while ancestor is not None and not isinstance(ancestor.attributes.get("sym_name"), str):
        ancestor = ancestor.parent_op
    return "" if ancestor is None else _NUMBER.sub("", str(ancestor.attributes["sym_name"]))


def _input_value_ids(session: Session) -> dict[int, int]:
    """Return the id of the first value of each slot that has values in the input program."""
    names = session.names.names if session.names is not None else {}
    originals = session.program.originals
    input_ids: dict[int, int] = {}
    for number, slot in _slots(session.problem):
        original = number
        while original not in names and original in originals:
            original = originals[original]
        if original in names:
            input_ids.setdefault(slot, original)
    return input_ids


def _slots(problem: Problem) -> Iterator[tuple[int, int]]:
    for slot, value in enumerate(problem.slot_values):
        yield value.id, slot
