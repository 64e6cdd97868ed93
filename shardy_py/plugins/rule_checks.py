"""Check the rule of a plugin against its op, and warn about likely mistakes."""

from __future__ import annotations

import dis
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import FunctionType
from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, RuleError, RuleWarning
from shardy_py.guards.error_texts import location_of, shorten_location, shown
from shardy_py.guards.guard import Guard, InvalidAnswer
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.rule_attributes import RULE_ATTRIBUTE, with_written_reductions
from shardy_py.plugins.op_definition import OpDefinition
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.einsum.spec import RuleSpec
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import Shape, tensor_shape
from shardy_py.sharding.rule_fit import rule_problems, shown_shapes, written_rule_problems


def checked_rule(guard: Guard, rule: object, op: Op, *, any_sizes: bool) -> OpShardingRule:
    """Return the answer of a rule function, checked against the op.

    Each distinct rule is checked once for the same shapes.

    Args:
        guard: The guard of the function.
        rule: Its answer.
        op: The op.
        any_sizes: Whether the factors may have other sizes than their dimensions.

    Raises:
        RuleError: it does not fit; the error names the op, its shapes and whose rule it is.
    """
    try:
        return _fitting(rule, op, any_sizes=any_sizes)
    except (InvalidAnswer, RuleError) as error:
        raise guard.failure(error, op) from error


def _fitting(rule: object, op: Op, *, any_sizes: bool) -> OpShardingRule:
    if not isinstance(rule, OpShardingRule):
        hint = "return what build() or sdy.rule(...) returns, or None"
        raise InvalidAnswer(f"returned {shown(rule)}, not an OpShardingRule", hint)
    arity = (len(rule.operand_mappings), len(rule.result_mappings))
    operands, results = _shapes(op)
    if arity != (len(operands), len(results)):
        message = f"made the rule {rule}: the rule has {arity[0]} operands and {arity[1]} results"
        raise InvalidAnswer(
            f"{message}, the op {len(operands)} and {len(results)}", "give one mapping per operand and per result"
        )
    try:
        problems = rule_problems(rule, operands, results, any_sizes=any_sizes)
    except TypeError as error:
        raise InvalidAnswer(f"made a rule with values of another type than an OpShardingRule has: {error}") from error
    if problems:
        excerpt = f"{rule}\n{shown_shapes(operands, results)}"
        raise RuleError(*(evolve(item, excerpt=item.excerpt or excerpt) for item in problems))
    return rule


def check_written_rule(op: Op, written: object) -> OpShardingRule:
    """Return the rule written on an op, checked as the reference does: such a rule may have any sizes.

    Raises:
        RuleError: it does not fit the op, or is not a rule.
    """
    if not isinstance(written, OpShardingRule):
        message = f"{RULE_ATTRIBUTE} holds {shown(written)}, not a sharding rule"
        raise RuleError(Diagnostic("invalid-rule", message, op.location, op.name, "write #sdy.op_sharding_rule<...>"))
    operands, results = _shapes(op)
    rule = with_written_reductions(op, written)
    problems = written_rule_problems(rule, operands, results)
    if problems:
        excerpt = f"{rule}\n{shown_shapes(operands, results)}"
        raise RuleError(*(evolve(item, op=op.name, location=op.location, excerpt=excerpt) for item in problems))
    return rule


def as_combiner(answer: Any, op: Op) -> Combiner | None:
    """Return the combiner that a plugin gives for the reductions of an op.

    Raises:
        Unfit: it is neither a combiner nor None.
    """
    if answer is not None and not isinstance(answer, Combiner):
        raise InvalidAnswer(
            f"returned {shown(answer)}, which is not a Combiner", "for example Combiner.MAX, or None for not"
        )
    return answer


def as_operand_numbers(answer: Any, op: Op) -> tuple[int, ...]:
    """Return the numbers of operands, sorted.

    Raises:
        Unfit: they are none of the op's.
    """
    numbers = tuple(sorted(answer)) if isinstance(answer, (tuple, list, set, frozenset, range)) else (None,)
    if not all(type(number) is int and 0 <= number < len(op.operands) for number in numbers):
        raise InvalidAnswer(
            f"returned {shown(answer)}, not numbers of operands", f"the op has {len(op.operands)}, from 0 on"
        )
    return numbers


def _shapes(op: Op) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    return tuple([tensor_shape(value) for value in op.operands]), tuple([tensor_shape(value) for value in op.results])


_BUNDLED = frozenset(("shardy_dialects", "shardy_py"))
_CONSTANT = frozenset(("LOAD_CONST", "RETURN_CONST"))
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


def find_notices(definitions: Iterable[OpDefinition], owners: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """Return a notice for each rule text with an unmarked factor that only operands have.

    Such a factor passes through: no all-reduce follows, and each device keeps the result of its own shard. There is a
    notice for each rule function without a return, too.

    Args:
        definitions: The definitions of ops.
        owners: Op name to its owner.
    """
    owned = [(item, owners.get(item.name, "")) for item in definitions]
    return tuple(notice for pair in owned for find in (_unmarked, _without_return) for notice in find(*pair))


def _unmarked(definition: OpDefinition, owner: str) -> Iterator[Diagnostic]:
    if isinstance(definition.rule, RuleSpec):
        yield from unmarked_factors(definition.rule, definition.name, owner, definition.location)


def unmarked_factors(spec: RuleSpec, op: str, owner: str, location: str) -> Iterator[Diagnostic]:
    """Yield a notice for a rule with unmarked factors that only operands have.

    Args:
        spec: The rule.
        op: The name of its op.
        owner: The words that name who defines it.
        location: The line that defines it, or "".
    """
    if not spec.unmarked:
        return
    from shardy_py.sharding.einsum.text import excerpt

    names = ", ".join(spec.unmarked)
    factors = "factors" if len(spec.unmarked) > 1 else "factor"
    message = f"no result has the {factors} {names}, and no mark says what becomes of it"
    hint = (
        f'reduction="{names}" if the op sums along it, need_replication="{names}" if it needs all of it,'
        f' pass_through="{names}" if every shard gives the same result'
    )
    hint += f"; the rule is defined by {owner}" if owner else ""
    yield Diagnostic(
        "unmarked-factor", message, shorten_location(location), op=op, hint=hint, excerpt=excerpt(spec.text)
    )


def _without_return(definition: OpDefinition, owner: str) -> Iterator[Diagnostic]:
    """Yield a notice for a rule function that has a body and never returns a rule."""
    function = getattr(definition.rule, "get_sharding_rule", definition.rule)
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType) or function.__module__.partition(".")[0] in _BUNDLED:
        return
    steps = list(dis.get_instructions(function))
    last = _last_steps(steps)
    calls = any(step.opname.startswith("CALL") for step in steps)
    if calls and last and all(step.opname in _CONSTANT and step.argval is None for step in last):
        message = f"the rule function {function.__name__} never returns a rule"
        hint = "is a return missing?" + (f" It is defined by {owner}" if owner else "")
        yield Diagnostic("no-return", message, location_of(function), op=definition.name, hint=hint)


def _last_steps(steps: Sequence[dis.Instruction]) -> list[dis.Instruction]:
    """Return the instructions of a function that load its return values, for any version of Python."""
    returns = [step for step in steps if step.opname == "RETURN_CONST"]
    before = {after.offset: step for step, after in pairwise(steps)}
    for step in steps:
        if step.opname == "RETURN_VALUE":
            returns.append(before[step.offset])
            jumps = [item for item in steps if item.opcode in _JUMPS and item.argval == step.offset]
            returns += [before[jump.offset] if jump.opname == "JUMP_FORWARD" else jump for jump in jumps]
    return returns


def warn_at(notices: Iterable[Diagnostic], function: object) -> None:
    """Warn of each notice once, at its location, which is in the module of a function."""
    known = getattr(function, "__globals__", {}).setdefault("__warningregistry__", {})
    for notice in notices:
        file, _, line = notice.location.rpartition(":")
        message = RuleWarning(notice.show("warning"))
        warnings.warn_explicit(message, RuleWarning, file or "a plugin", int(line or 0), registry=known)


def warn_of(notices: Iterable[Diagnostic]) -> None:
    """Warn of each notice in Python's way."""
    for notice in notices:
        warnings.warn(RuleWarning(notice.show("warning")), stacklevel=4)
