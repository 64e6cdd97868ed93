"""Names of the values and ops of a run, as the text of the module has them, and locations short enough for a line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from attrs import evolve, field

from shardy_py.ir.graph.op_names import CALL, DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE, FUNCTION, NAMED_COMPUTATION, RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.walk import all_values
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.trace import op_of_visit
from shardy_py.transforms.constant_copies import CopyLog
from shardy_py.values import frozen

EDGE_SUFFIX = " edge"
_EDGES = (DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE)


@frozen
class OpLabel:
    """The name of an op in explanations.

    Args:
        name: The name of the op, for example ``stablehlo.add``.
        results: The names of its results, or its symbol.
        location: Its place in the source, or "".
    """

    name: str
    results: str = ""
    location: str = ""

    def __str__(self) -> str:
        return self.results if self.results.startswith(self.name) else f"{self.name} {self.results}".rstrip()


@frozen
class OpWithoutStep:
    """An op through which nothing propagates: it has no sharding rule, or nothing to pass on.

    Args:
        label: Its name in the given program.
        name: The name of the op in the result, such as ``sdy.constant`` for a constant of a dialect.
        index: Its index among all ops of the program.
        operands: The slots of its operands; -1 for one that cannot be sharded.
        results: The slots of its results; -1 for one that cannot be sharded.
        attributes: Its attributes, shortened; they tell calls of different targets apart.
        reason: Why nothing propagates through it.
    """

    label: OpLabel
    name: str
    index: int
    operands: tuple[int, ...]
    results: tuple[int, ...]
    attributes: str
    reason: str


@frozen(eq=False)
class Labels:
    """The names of the slots and steps of a problem.

    Args:
        of_slot: Slot to name.
        of_step: Step (see `Visit.step`) to the label of its op.
        slots: Name to slot, with all names that values in the text have.
        results: Step to the slots of the results of its op.
        aliases: Other names of arguments and results of the main function to their slots.
        unseen: The names of values in the text that propagation does not see.
        others: The ops through which nothing propagates, in program order.
        indices: Step to the index of its op among all ops of the program.
    """

    of_slot: Mapping[int, str]
    of_step: Mapping[int, OpLabel]
    slots: Mapping[str, int]
    results: dict[int, tuple[int, ...]]
    aliases: dict[str, int] = field(factory=dict)
    unseen: frozenset[str] = frozenset()
    others: tuple[OpWithoutStep, ...] = ()
    indices: Mapping[int, int] = field(factory=dict)
    _alias_of: Mapping[int, str] = field(init=False, repr=False)
    _makers: Mapping[int, int] = field(init=False, repr=False)

    @_alias_of.default
    def _first_aliases(self) -> Mapping[int, str]:
        return {slot: name for name, slot in reversed(self.aliases.items()) if name not in self.slots}

    @_makers.default
    def _first_makers(self) -> Mapping[int, int]:
        return {slot: step for step, slots in reversed(self.results.items()) for slot in slots}

    def value(self, slot: int) -> str:
        """Return the name of a slot: the user's own where it is known; of a value that cannot be sharded, a dash."""
        return self._alias_of.get(slot) or self.printed(slot)

    def printed(self, slot: int) -> str:
        """Return the name of a slot in the text; of a value that cannot be sharded, a dash."""
        return self.of_slot.get(slot, "-")

    def maker(self, slot: int) -> int | None:
        """Return the step of the op that makes a value, or None."""
        return self._makers.get(slot)

    @property
    def ops(self) -> dict[int, OpLabel]:
        """Number to the label of every op, in program order: a step, or a number that `other` takes."""
        steps = [(self.indices.get(step, 0), step, label) for step, label in self.of_step.items() if step >= 0]
        others = [
            (other.index, number, other.label) for number, other in enumerate(self.others, start=len(self.results))
        ]
        # Where steps have no index there are no others, and steps are in program order.
        return {number: label for _, number, label in sorted([*steps, *others], key=lambda item: item[:2])}

    def other(self, number: int) -> OpWithoutStep | None:
        """Return the op of a number that is not a step."""
        return self.others[number - len(self.results)] if number >= len(self.results) else None

    def other_maker(self, slot: int) -> OpWithoutStep | None:
        """Return the op that makes a value and through which nothing propagates, or None."""
        return next((other for other in self.others if slot in other.results), None)

    def location(self, slot: int) -> str:
        """Return the place of the op that makes a value, or ""."""
        maker = self.maker(slot)
        return "" if maker is None else self.of_step[maker].location

    def renamed(self, slots: Mapping[str, int], unseen: frozenset[str]) -> Labels:
        """Return labels with other names; values without a new name keep the old one, in parentheses.

        Args:
            slots: Name to slot.
            unseen: The names of values in the text that propagation does not see.
        """
        unnamed = {slot: f"({name})" if name.startswith(("%", "@")) else name for slot, name in self.of_slot.items()}
        of_slot = {**unnamed, **names_by_slot(slots)}
        of_step = {
            step: evolve(label, results=_join(of_slot, self.results.get(step, ())))
            for step, label in self.of_step.items()
        }
        others = tuple(
            evolve(other, label=OpLabel(other.name, _join(of_slot, _sharded(other.results)), other.label.location))
            for other in self.others
        )
        return Labels(of_slot, of_step, slots, self.results, self.aliases, unseen, others, self.indices)


def program_names(program: Program, main: Op, printed: Mapping[int, str]) -> dict[int, str]:
    """Return the names of values by id; outside the main function they begin with the name of their function.

    Args:
        program: The program.
        main: Its main function.
        printed: Value id to the name in the text, which regions beside each other may use again: the second value
            of a name is called ``%3~2``.
    """
    names: dict[int, str] = {}
    counts: Counter[str] = Counter()
    for function in program.functions.values():
        prefix = "" if function is main else f"@{function.attributes['sym_name']}:"
        for value in all_values(function):
            name = printed.get(value.id)
            if name:
                names[value.id] = _unique(f"{prefix}{name}", counts)
        for value in function.function_results:
            names[value.id] = f"{prefix}result{value.index}"
    return names


def slots_by_name(names: Mapping[int, str], problem: Problem) -> dict[str, int]:
    """Return the slots of the values that have a name."""
    return {name: problem.slot_of[value] for value, name in names.items() if value in problem.slot_of}


def _unique(name: str, counts: Counter[str]) -> str:
    """Return a name, with its number behind a tilde where regions beside each other use it for several values."""
    counts[name] += 1
    return name if counts[name] == 1 else f"{name}~{counts[name]}"


def names_by_slot(slots: Mapping[str, int]) -> dict[int, str]:
    """Return the first name of every slot."""
    by_slot: dict[int, str] = {}
    for name, slot in slots.items():
        by_slot.setdefault(slot, name)
    return by_slot


def with_copies(names: Mapping[int, str], program: Program, copies: CopyLog | None) -> dict[int, str]:
    """Return names with those of values that passes copied or replaced.

    The copy of the constant ``%0`` that ``%3`` uses is called ``%0 for %3``; the second copy of a function's ``%2``,
    ``@f:%2~2``.

    Args:
        names: Value id to name, in the program as it was given.
        program: The program, which knows what it has copied.
        copies: The copies of constants that were made.
    """
    result, counts = dict(names), Counter(names.values())
    for original, stand_in, user in copies.stand_ins() if copies is not None else ():
        suffix = "" if user is None else f" for {_name_of_user(user, result)}"
        for value, new in zip(original.results, stand_in.results, strict=False):
            if value.id in result and new.id not in result:
                name = f"{result[value.id]}{suffix}"
                result[new.id] = name if user is None else _unique(name, counts)
    # Of a function that was inlined only copies are left; the first one has the name.
    gone = result.keys() - _living(program) if program.originals else set()
    for copy, original_id in program.originals.items():
        # A copy is made after what it is a copy of, so that this has its name by now.
        if copy not in result and original_id in result:
            result[copy] = result[original_id] if original_id in gone else _unique(result[original_id], counts)
            gone.discard(original_id)
    return result


def _living(program: Program) -> set[int]:
    """Return the ids of the values of a program."""
    return {value.id for function in program.functions.values() for value in all_values(function)}


def _name_of_user(user: Op, names: Mapping[int, str]) -> str:
    """Return the name of an op's results, without the numbers of several ones."""
    return next((names[value.id].partition("#")[0] for value in user.results if value.id in names), user.name)


def capture_labels(names: Mapping[int, str], problem: Problem, aliases: Mapping[str, int] | None = None) -> Labels:
    """Return the labels of a problem, while its program still is as propagation saw it.

    Args:
        names: Value id to name, in the program as it was given and for copies.
        problem: The problem.
        aliases: Other names, with the ids of their values.
    """
    slots = slots_by_name(names, problem)
    of_slot = names_by_slot(slots)
    for slot, value in enumerate(problem.slot_values):
        if slot not in of_slot:
            of_slot[slot] = _describe(value, names)
    results = {step: _result_slots(problem, step) for step in range(problem.num_steps)}
    of_step = {step: _label_of_step(problem, step, of_slot, slots_) for step, slots_ in results.items()}
    for number in range(len(problem.function_results)):
        of_step[-1 - number] = OpLabel(RETURN, location=op_of_visit(problem, -1 - number).location)
    others = {name: problem.slot_of[value] for name, value in (aliases or {}).items() if value in problem.slot_of}
    unseen = frozenset(names.values()) - slots.keys()
    return Labels(of_slot, of_step, slots, results, others, unseen)


def _describe(value: Value, names: Mapping[int, str]) -> str:
    """Return a name for a value that has none in the text: made by a pass, or a copy."""
    if value.id in names:
        return names[value.id]
    owner = value.owner
    if isinstance(owner, Block):
        parent = owner.parent_op
        return f"argument {value.index} of {_symbol(parent) if parent else 'a region'}"
    if owner.name in _EDGES and owner.operands:
        return _describe(owner.operands[0], names)
    if owner.name == FUNCTION:
        return f"{_symbol(owner)}:result{value.index}"
    text = f"{owner.name}#{value.index}" if len(owner.results) > 1 else owner.name
    symbol = _symbol(owner)
    if symbol != owner.name:
        return f"{text} of {symbol}"
    user = next((user for user, _ in value.uses if user.results), None)
    name = names.get(user.results[0].id) if user is not None else None
    return f"{text} for {name}" if name else text


def _symbol(op: Op) -> str:
    name = op.attributes.get("sym_name") or op.attributes.get("name")
    return f"@{name}" if isinstance(name, str) else op.name


def _label_of_step(problem: Problem, step: int, of_slot: Mapping[int, str], results: tuple[int, ...]) -> OpLabel:
    op = problem.step_ops[step]
    name, location = op.name, op.location
    if name in _EDGES and op.operands:
        flow = op.operands[0].owning_op
        # What a user calls a call is a named computation while shardings propagate.
        flow_name = CALL if flow.name == NAMED_COMPUTATION else flow.name
        name, location = f"{flow_name}{EDGE_SUFFIX}", flow.location
    return OpLabel(name, _join(of_slot, results), location)


def _result_slots(problem: Problem, step: int) -> tuple[int, ...]:
    slots = [problem.slot_of.get(value.id) for value in problem.step_ops[step].results]
    return tuple([slot for slot in slots if slot is not None])


def _sharded(slots: Iterable[int]) -> list[int]:
    """Return the slots of values that can be sharded."""
    return [slot for slot in slots if slot >= 0]


def _join(of_slot: Mapping[int, str], slots: Iterable[int]) -> str:
    return ", ".join(of_slot[slot] for slot in slots)


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
