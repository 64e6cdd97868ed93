"""Notices about likely mistakes in the rules of a dialect."""

from __future__ import annotations

import dis
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import FunctionType

from shardy_py.errors import Diagnostic, RuleWarning
from shardy_py.guards.plugin_places import place_of
from shardy_py.plugins.op_definition import OpDefinition
from shardy_py.sharding.einsum.spec import RuleSpec

_BUNDLED = frozenset(("shardy_dialects", "shardy_py"))
_CONSTANT = frozenset(("LOAD_CONST", "RETURN_CONST"))
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


def find_notices(definitions: Iterable[OpDefinition], owners: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """Return a notice for each rule text with a factor that only operands have and that no mark speaks of.

    Such a factor passes through: no all-reduce follows, and each device keeps the result of its own shard. There is a
    notice for each rule function without a return, too.

    Args:
        definitions: The definitions of ops.
        owners: Op name to its owner.
    """
    found = [(item, owners.get(item.name, "")) for item in definitions]
    return tuple(notice for pair in found for find in (_unmarked, _without_return) for notice in find(*pair))


def _unmarked(definition: OpDefinition, owner: str) -> Iterator[Diagnostic]:
    if isinstance(definition.rule, RuleSpec):
        yield from unmarked_factors(definition.rule, definition.name, owner)


def unmarked_factors(spec: RuleSpec, op: str, owner: str) -> Iterator[Diagnostic]:
    """Yield a notice for a rule with factors that only operands have and that no mark speaks of.

    Args:
        spec: The rule.
        op: The name of its op.
        owner: The words that name who defines it.
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
    yield Diagnostic("unmarked-factor", message, op=op, hint=hint, excerpt=excerpt(spec.text))


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
        yield Diagnostic("no-return", message, place_of(function), op=definition.name, hint=hint)


def _last_steps(steps: Sequence[dis.Instruction]) -> list[dis.Instruction]:
    """Return the steps of a function that give what it returns, in the code of any version of Python."""
    found = [step for step in steps if step.opname == "RETURN_CONST"]
    before = {after.offset: step for step, after in pairwise(steps)}
    for step in steps:
        if step.opname == "RETURN_VALUE":
            found.append(before[step.offset])
            jumps = [item for item in steps if item.opcode in _JUMPS and item.argval == step.offset]
            found += [before[jump.offset] if jump.opname == "JUMP_FORWARD" else jump for jump in jumps]
    return found


def warn_at(notices: Iterable[Diagnostic], function: object) -> None:
    """Warn of each notice once, at the place of the function that made the rule."""
    file, _, line = place_of(function).rpartition(":")
    known = getattr(function, "__globals__", {}).setdefault("__warningregistry__", {})
    for notice in notices:
        message = RuleWarning(notice.show("warning"))
        warnings.warn_explicit(message, RuleWarning, file or "a plugin", int(line or 0), registry=known)


def warn_of(notices: Iterable[Diagnostic]) -> None:
    """Warn of each notice in Python's way."""
    for notice in notices:
        warnings.warn(RuleWarning(notice.show("warning")), stacklevel=4)
