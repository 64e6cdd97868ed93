"""Constraints: shardings of intermediate tensors, as a user writes them and as MLIR."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from shardy_py.cost.advice.constraint_locations import SourceLineTensors
from shardy_py.cost.advice.layouts import ArgumentShardings
from shardy_py.cost.advice.pricing import Figures, Goal
from shardy_py.cost.advice.source_lines import changed_line
from shardy_py.errors import Diagnostic
from shardy_py.sharding.jax_text import jax_constraint
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.labels import short_place
from shardy_py.values import frozen


@frozen
class Constraint:
    """A sharding for the tensors of a place.

    Args:
        place: The tensors.
        sharding: The sharding.
        code: The line that a user writes behind the one that makes ``x``, in the words of the frontend; "" where
            only the ops of Shardy can be written.
    """

    place: SourceLineTensors
    sharding: TensorSharding
    code: str = ""

    @property
    def shardings(self) -> dict[int, TensorSharding]:
        """Slot to sharding."""
        return dict.fromkeys((*self.place.slots, *self.place.gradients), self.sharding)

    @property
    def of_values(self) -> dict[int, TensorSharding]:
        """Id of a value of the program that was given to sharding."""
        return dict.fromkeys((*self.place.values, *self.place.gradient_values), self.sharding)

    @property
    def line(self) -> str:
        """The place in the source, with the name of the file only; "" where it is not known."""
        return short_place(self.place.location)

    @property
    def mlir(self) -> tuple[str, ...]:
        """An op of Shardy for each of the tensors."""
        names = (*self.place.names, *self.place.gradient_names)
        return tuple(f"sdy.sharding_constraint {name} {self.sharding} : {self.place.type}" for name in names)

    @property
    def jax(self) -> str:
        """The line that a user of JAX writes behind the one that makes ``x``."""
        return jax_constraint(self.sharding)

    @property
    def diff(self) -> tuple[str, ...]:
        """The line of the source as it is, and with the constraint around the expression; empty where not clear."""
        change = changed_line(self.place.location, self.code)
        return () if change is None else (f"-{change[0]}", f"+{change[1]}")

    @property
    def lines(self) -> tuple[str, ...]:
        """The line of the user's program, else the ops of Shardy."""
        return (self.code,) if self.code else self.mlir

    def to_json(self) -> dict[str, Any]:
        """Return the constraint as plain lists, dictionaries and numbers."""
        place = self.place
        return {
            "code": self.code,
            "diff": list(self.diff),
            "jax": self.jax,
            "line": self.line,
            "location": place.location,
            "mlir": list(self.mlir),
            "op": place.op,
            "type": str(place.type),
            "values": list(place.names),
            "sharding": str(self.sharding),
        }


@frozen
class AdvisedConstraint:
    """A constraint with its effect.

    Args:
        constraint: The constraint.
        alone: The figures with this constraint only.
        together: The figures with it and all that stand before it.
    """

    constraint: Constraint
    alone: Figures
    together: Figures

    def to_json(self) -> dict[str, Any]:
        """Return the constraint with its effect as plain data."""
        return {
            **self.constraint.to_json(),
            "alone": attrs.asdict(self.alone),
            "together": attrs.asdict(self.together),
        }


@frozen
class Advice:
    """Constraints that make a program cheaper, with figures of `Session.evaluate` for the program as they change it.

    Args:
        goal: What was to become small.
        before: The figures of the program as it is.
        constraints: The set, in the order in which they were added.
        others: Constraints that help alone, but are not in the set; the best first.
        tried: How many different outcomes were priced.
        devices: The number of devices.
        machine: The name of the machine, or None.
        problem: By how much the best exceeds the memory budget; None if it fits.
        warnings: What is worth knowing of the program.
        inputs: Shardings of the inputs, where these had none and no constraint helps; else None.
    """

    goal: Goal
    before: Figures
    constraints: tuple[AdvisedConstraint, ...]
    others: tuple[AdvisedConstraint, ...]
    tried: int
    devices: int
    machine: str | None = None
    problem: Diagnostic | None = None
    warnings: tuple[Diagnostic, ...] = ()
    inputs: ArgumentShardings | None = None

    def __str__(self) -> str:
        """Return the figures as they are and with each constraint, and each as a user writes it."""
        return "\n".join([self.title, f"as it is: {self.before}", *self._lines()])

    @property
    def title(self) -> str:
        """Heading: the goal, the number of devices and the machine."""
        where = "" if self.machine is None else f", {self.machine}"
        return f"Advice for {self.goal} on one of {self.devices} devices{where}"

    def _lines(self) -> Iterator[str]:
        for number, advised in enumerate(self.constraints, start=1):
            yield f"{number}. {advised.constraint.place}"
            yield from (f"    {line}" for line in advised.constraint.diff or advised.constraint.lines)
            yield f"    with {'it' if number == 1 else f'1 to {number}'}: {advised.together}"
        if not self.constraints:
            yield self.nothing_saved
        if self.inputs is not None:
            yield self.inputs_title
            yield f"    with it: {self.inputs.figures}"
            yield from (f"    {line}" for line in self.inputs.lines)
        if self.problem is not None:
            yield self.problem.message

    @property
    def inputs_title(self) -> str:
        """Heading of the shardings of the inputs."""
        return f"No input is sharded; shard them: {'' if self.inputs is None else self.inputs.name}"

    @property
    def nothing_saved(self) -> str:
        """That no constraint saves enough, and how many outcomes were tried."""
        tried = "1 outcome was" if self.tried == 1 else f"{self.tried} outcomes were"
        return f"no constraint saves enough; {tried} tried"

    @property
    def after(self) -> Figures:
        """The figures with the whole set."""
        if self.inputs is not None:
            return self.inputs.figures
        return self.constraints[-1].together if self.constraints else self.before

    @property
    def shardings(self) -> dict[int, TensorSharding]:
        """Id of a value of the program that was given to its sharding."""
        return {
            value: sharding for advised in self.constraints for value, sharding in advised.constraint.of_values.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Return the advice as plain lists, dictionaries and numbers; sizes are in bytes, times in seconds."""
        return {
            "machine": self.machine,
            "devices": self.devices,
            "minimise": self.goal.measure,
            "memory": self.goal.memory,
            "problem": None if self.problem is None else self.problem.message,
            "tried": self.tried,
            "before": attrs.asdict(self.before),
            "after": attrs.asdict(self.after),
            "constraints": [advised.to_json() for advised in self.constraints],
            "others": [advised.to_json() for advised in self.others],
            "inputs": None if self.inputs is None else self.inputs.to_json(),
        }
