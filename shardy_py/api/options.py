"""Options of a propagation, checked before anything is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from shardy_py.arguments import shown
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.propagation import PropagationOptions
from shardy_py.schedule.given import OpPriorities, ScheduleLike, make_schedule
from shardy_py.schedule.model import OpPriority

Strategy = Literal["basic", "aggressive", "op-priority", "user-priority"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)
_WITH_LEVELS = ("op-priority", "user-priority")


def propagation_options(
    *,
    strategy: str,
    conservative: bool,
    keep_sharding_rules: bool,
    schedule: ScheduleLike | None = None,
    op_priorities: OpPriorities | None = None,
    plugin_priorities: Iterable[OpPriority] = (),
    plugin_traits: Iterable[str] = (),
) -> PropagationOptions:
    """Return the options of the engine.

    Args:
        strategy: The name of the strategy.
        conservative: See `PropagationOptions`.
        keep_sharding_rules: See there.
        schedule: See `make_schedule`; likewise the rest.
        op_priorities: See there.
        plugin_priorities: See there.
        plugin_traits: See there.

    Raises:
        OptionError: the strategy is unknown, or it has no levels that a schedule could replace.
    """
    if not isinstance(strategy, str) or strategy not in STRATEGIES:
        raise OptionError(
            Diagnostic(
                "unknown-strategy", f"unknown strategy {shown(strategy)}", hint=f"use one of {', '.join(STRATEGIES)}"
            )
        )
    has_levels = strategy in _WITH_LEVELS
    if not (has_levels or schedule is op_priorities is None):
        raise OptionError(
            Diagnostic("option-conflict", f"the strategy {strategy} has no levels", hint=f"use {_WITH_LEVELS[0]}")
        )
    levels = make_schedule(
        schedule, op_priorities=op_priorities, plugin_priorities=plugin_priorities, plugin_traits=plugin_traits
    )
    return PropagationOptions(
        schedule=levels if has_levels else None,
        strategy="basic" if strategy == "basic" else "aggressive",
        user_priorities=strategy == "user-priority",
        conservative=conservative,
        keep_sharding_rules=keep_sharding_rules,
    )
