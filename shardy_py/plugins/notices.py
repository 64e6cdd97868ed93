"""What is most likely a mistake in the rules of a dialect, though nothing is wrong with it for sure."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping

from shardy_py.errors import Diagnostic, RuleWarning
from shardy_py.plugins.dialect import OpDefinition
from shardy_py.sharding.einsum import RuleSpec
from shardy_py.sharding.einsum_text import excerpt


def find_notices(definitions: Iterable[OpDefinition], owners: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """Return a notice for each rule text with a factor that only operands have and that no mark speaks of.

    Such a factor passes through: no all-reduce follows, and each device keeps the result of its own shard.

    Args:
        definitions: The definitions of ops.
        owners: For each op name, who defines it.
    """
    return tuple(notice for item in definitions for notice in _unmarked(item, owners.get(item.name, "")))


def _unmarked(definition: OpDefinition, owner: str) -> Iterator[Diagnostic]:
    spec = definition.rule
    if not isinstance(spec, RuleSpec) or not spec.unmarked:
        return
    names = ", ".join(spec.unmarked)
    factors = "factors" if len(spec.unmarked) > 1 else "factor"
    message = f"no result has the {factors} {names}, and no mark says what becomes of it"
    hint = (
        f'reduction="{names}" if the op sums along it, need_replication="{names}" if it needs all of it,'
        f' pass_through="{names}" if every shard gives the same result'
    )
    hint += f"; the rule is defined by {owner}" if owner else ""
    yield Diagnostic("unmarked-factor", message, op=definition.name, hint=hint, excerpt=excerpt(spec.text))


def warn_of(notices: Iterable[Diagnostic]) -> None:
    """Warn of each notice in Python's way."""
    for notice in notices:
        warnings.warn(RuleWarning(notice.show("warning")), stacklevel=4)
