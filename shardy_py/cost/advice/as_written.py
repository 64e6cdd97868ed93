"""Figures of advice as a user writes it: the program is read again with the advice in it, and evaluated.

The search prices shardings of tensors by the estimator, as it prices many. What it proposes is written into a copy of
the program, with an op for each constraint, and costs what `Session.evaluate` says of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve

from shardy_py.api.annotated_text import annotated_text
from shardy_py.api.keywords import keywords
from shardy_py.api.options import ProgramInput, SessionArguments
from shardy_py.cost.advice.constraints import Constraint
from shardy_py.cost.advice.pricing import Figures, Judge
from shardy_py.cost.local_cost import Partitioner
from shardy_py.cost.machines.profile import choose_profile
from shardy_py.cost.priced_input import is_priced_like_jit
from shardy_py.cost.reopen import ProgramChange, changed_text, open_changed
from shardy_py.cost.session import Session
from shardy_py.errors import ShardyError
from shardy_py.ir.graph.op_names import CONSTRAINT
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import all_values
from shardy_py.plugins import Registry
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define


def write_constraints(program: Program, shardings: Mapping[int, TensorSharding]) -> None:
    """Put a sharding constraint behind each of some tensors, for all users of the tensor.

    Args:
        program: The program, before any pass.
        shardings: Id of a value to its sharding; ids of other programs are left out.
    """
    values = {value.id: value for function in program.functions.values() for value in all_values(function)}
    for number, sharding in shardings.items():
        value = values.get(number)
        if value is None:
            continue
        constraint = Op(program, CONSTRAINT, [value], [value.type])
        value.insert_after(constraint)
        value.replace_all_uses_with(constraint.result, except_op=constraint)
        program.shardings[constraint.result.id] = sharding


@define(eq=False)
class WrittenJudge:
    """Evaluates a program with advice written into it.

    Attributes:
        judge: The judge of the search, with the program and what it is priced by.
    """

    judge: Judge

    def as_it_is(self) -> Figures:
        """Return the figures of the program without advice.

        Raises:
            ShardyError: the program cannot be priced.
        """
        return self._figures(self.judge.session)

    def with_constraints(self, constraints: Sequence[Constraint]) -> Figures | None:
        """Return the figures with constraints; None where the program has no shardings with them."""
        if self.judge.session.source is None:
            slots = {slot: sharding for item in constraints for slot, sharding in item.shardings.items()}
            return self._try(lambda: self.judge.session.with_shardings(slots))
        values = {value: sharding for item in constraints for value, sharding in item.of_values.items()}
        return self.with_change(lambda program, _: write_constraints(program, values))

    def with_plan(self, write_into: ProgramChange) -> Figures | None:
        """Return the figures with a plan, which is written into the module as it stands; None where it is not valid."""
        source = evolve(self._source, like="passes")
        if self.judge.session.like == "jit":
            return self._try(lambda: self._read_again(changed_text(source, write_into), like="jit"))
        return self.with_change(write_into)

    def with_change(self, change: ProgramChange) -> Figures | None:
        """Return the figures of the program with a change; None where it has no shardings with it."""
        if is_priced_like_jit(self._source, self.judge.machine):
            # What jax.jit propagates is another form, with other values, made from the text.
            return self._try(lambda: self._read_again(changed_text(self._source, change)))
        return self._try(lambda: open_changed(self._source, change))

    def with_inputs(self, shardings: Mapping[str, TensorSharding]) -> Figures | None:
        """Return the figures with shardings of arguments, by name; None where the program has none with them."""
        return self._try(lambda: Session.open(**{**keywords(self._source), "in_shardings": dict(shardings)}))

    def _read_again(self, text: str, **changes: Any) -> Session:
        return Session.open(**{**keywords(self._source), **_BARE, "module": text, **changes})

    @property
    def _source(self) -> SessionArguments:
        source = self.judge.session.source
        assert source is not None, "only a session that was opened is advised"
        return source

    def _try(self, reopen: Callable[[], Session]) -> Figures | None:
        try:
            return self._figures(reopen())
        except ShardyError:
            return None

    def _figures(self, session: Session) -> Figures:
        judge = self.judge
        rules = choose_profile(None, judge.machine)
        # XLA's partitioner runs what JAX lowered, on the same terms as the text that JAX wrote of it.
        partitioner: Partitioner | None = "xla" if session.like == "jit" and rules.follows_results else None
        evaluation = session.evaluate(judge.schedule, judge.machine, axes=judge.axes, partitioner=partitioner)
        return Figures.of(evaluation.cost)


_BARE = dict.fromkeys(("mesh", "in_shardings", "out_shardings", "sizes", "args", "kwargs"))
"""Keywords of a program whose text has all that they say."""


def advised_text(program: ProgramInput, registry: Registry, shardings: Mapping[int, TensorSharding]) -> str:
    """Return the text of a program as it was given, with constraints on its tensors.

    Args:
        program: The program, which is read again; a module of jaxlib stays as it is.
        registry: The definitions of ops.
        shardings: Id of a value to its sharding.

    Raises:
        ShardyError: the module is not valid.
    """
    return annotated_text(program, registry, lambda read: write_constraints(read.program, shardings))
