"""What to call the values and ops of a run: by the names that the text of the module gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from shardy_py.ir.data_flow import DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE
from shardy_py.ir.graph import Block, Op, Program, Value
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.trace import op_of_visit

FUNCTION = "func.func"
_EDGES = (DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE)


@frozen
class OpLabel:
    """What to call an op.

    Args:
        name: The name of the op, for example ``stablehlo.add``.
        results: The names of its results, or its symbol.
        location: Where it stands, or "".
    """

    name: str
    results: str = ""
    location: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.results}".rstrip()


@frozen(eq=False)
class Labels:
    """The names of the slots and steps of a problem.

    Args:
        of_slot: Slot to name.
        of_step: Step (see `Visit.step`) to the label of its op.
        slots: Name to slot, with all names that values in the text have.
    """

    of_slot: Mapping[int, str]
    of_step: Mapping[int, OpLabel]
    slots: Mapping[str, int]

    def value(self, slot: int) -> str:
        """Return the name of a slot; of a value that cannot be sharded, a dash."""
        return self.of_slot.get(slot, "-")

    def with_names(self, names: Mapping[int, str], problem: Problem) -> Labels:
        """Return labels that use other names where there are any.

        Args:
            names: Value id to name.
            problem: The problem.
        """
        slots = slots_by_name(names, problem)
        of_slot = {**{slot: f"({name})" for slot, name in self.of_slot.items()}, **_names_by_slot(slots)}
        results = {slot: name for slot, name in self.of_slot.items() if name.startswith("result")}
        of_step = {
            step: evolve(label, results=_results_label(problem, step, of_slot)) for step, label in self.of_step.items()
        }
        return Labels({**of_slot, **results}, of_step, {**slots, **{name: slot for slot, name in results.items()}})


def program_names(program: Program, main: Op, printed: Mapping[int, str]) -> dict[int, str]:
    """Return the names of values by id; outside the main function they begin with the name of their function.

    Args:
        program: The program.
        main: Its main function.
        printed: Value id to the name in the text, unique within a function only.
    """
    names: dict[int, str] = {}
    for function in program.functions.values():
        prefix = "" if function is main else f"@{function.attributes['sym_name']}:"
        for value in values_of(function):
            name = printed.get(value.id)
            if name:
                names[value.id] = f"{prefix}{name}"
        for value in function.function_results:
            names[value.id] = f"{prefix}result{value.index}"
    return names


def values_of(op: Op) -> Iterator[Value]:
    """Yield the values of an op and of all ops inside: arguments of its blocks, results."""
    for inner in op.walk():
        yield from inner.results
        for region in inner.regions:
            for block in region.blocks:
                yield from block.arguments


def slots_by_name(names: Mapping[int, str], problem: Problem) -> dict[str, int]:
    """Return the slots of the values that have a name."""
    return {name: problem.slot_of[value] for value, name in names.items() if value in problem.slot_of}


def _names_by_slot(slots: Mapping[str, int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for name, slot in slots.items():
        found.setdefault(slot, name)
    return found


def capture_labels(names: Mapping[int, str], problem: Problem) -> Labels:
    """Return the labels of a problem, while its program still is as propagation saw it.

    Args:
        names: Value id to name, in the program as it was given.
        problem: The problem.
    """
    slots = slots_by_name(names, problem)
    of_slot = _names_by_slot(slots)
    for slot, value in enumerate(problem.slot_values):
        if slot not in of_slot:
            of_slot[slot] = _describe(value, names)
    steps = [*range(problem.num_steps), *range(-1, -1 - len(problem.function_results), -1)]
    of_step = {step: _label_of_step(problem, step, of_slot) for step in steps}
    return Labels(of_slot, of_step, slots)


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


def _label_of_step(problem: Problem, step: int, of_slot: Mapping[int, str]) -> OpLabel:
    op = op_of_visit(problem, step)
    return OpLabel(op.name if step >= 0 else "func.return", _results_label(problem, step, of_slot), op.location)


def _results_label(problem: Problem, step: int, of_slot: Mapping[int, str]) -> str:
    if step < 0:
        return ""
    names = [
        of_slot[slot] for value in problem.step_ops[step].results if (slot := problem.slot_of.get(value.id)) is not None
    ]
    return ", ".join(names)
