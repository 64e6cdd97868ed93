"""The reference's four propagation passes, by their names and options."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from attrs import evolve, frozen

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph import Program
from shardy_py.ir.passes import PassContext
from shardy_py.propagation.engine import STRATEGIES, PropagationOptions, StrategyName, propagate_program
from shardy_py.propagation.schedule import DEFAULT, Schedule


@frozen
class PropagationPass(ABC):
    """What the propagation passes share.

    Args:
        keep_sharding_rules: Whether rules stay on the ops.
        module_dump_directory: Where the reference writes snapshots; only "" is accepted so far.
        conservative_propagation: Whether ops may not introduce sub-axes or uneven shards.
        debug_sharding_origins: Only False is accepted so far.
        debug_propagation_edge_sharding: Only False is accepted so far.
    """

    name: ClassVar[str]

    keep_sharding_rules: bool = False
    module_dump_directory: str = ""
    conservative_propagation: bool = False
    debug_sharding_origins: bool = False
    debug_propagation_edge_sharding: bool = False

    def __attrs_post_init__(self) -> None:
        for option in ("module_dump_directory", "debug_sharding_origins", "debug_propagation_edge_sharding"):
            if getattr(self, option):
                written = option.replace("_", "-")
                hint = "leave the option out"
                raise OptionError(Diagnostic("option-not-available", f"{written} is not available", hint=hint))

    @abstractmethod
    def options(self) -> PropagationOptions:
        """Return the options that make the engine do what the pass does."""

    def run(self, program: Program, context: PassContext) -> None:
        """Propagate in place."""
        options = evolve(
            self.options(),
            conservative=self.conservative_propagation,
            keep_sharding_rules=self.keep_sharding_rules,
        )
        propagate_program(program, context.semantics, options, warnings=context.warnings)


@frozen
class BasicPropagationPass(PropagationPass):
    """Propagates axes on which all operands and results agree; resolves no conflicts."""

    name: ClassVar[str] = "sdy-basic-propagate"

    def options(self) -> PropagationOptions:
        """Every op at once, with the basic strategy only."""
        return PropagationOptions(schedule=None, strategy="basic", user_priorities=False)


@frozen
class AggressivePropagationPass(PropagationPass):
    """Propagates with one or both factor propagation strategies."""

    name: ClassVar[str] = "sdy-aggressive-propagate"

    propagation_strategy: str = "aggressive"

    def options(self) -> PropagationOptions:
        """Every op at once."""
        strategy = parse_strategy(self.propagation_strategy)
        return PropagationOptions(schedule=None, strategy=strategy, user_priorities=False)


@frozen
class OpPriorityPropagationPass(PropagationPass):
    """Propagates level by level of the default schedule."""

    name: ClassVar[str] = "sdy-op-priority-propagate"

    propagation_strategy: str = "aggressive"
    run_op_priority_propagation: bool = True

    def options(self) -> PropagationOptions:
        """The default schedule, without user priorities."""
        strategy = parse_strategy(self.propagation_strategy)
        schedule = default_schedule(enabled=self.run_op_priority_propagation)
        return PropagationOptions(schedule=schedule, strategy=strategy, user_priorities=False)


@frozen
class UserPriorityPropagationPass(PropagationPass):
    """Propagates user priority by user priority, each through all levels of the default schedule."""

    name: ClassVar[str] = "sdy-user-priority-propagate"

    propagation_strategy: str = "aggressive"
    run_op_priority_propagation: bool = True

    def options(self) -> PropagationOptions:
        """The default schedule within user priorities."""
        strategy = parse_strategy(self.propagation_strategy)
        schedule = default_schedule(enabled=self.run_op_priority_propagation)
        return PropagationOptions(schedule=schedule, strategy=strategy, user_priorities=True)


def default_schedule(*, enabled: bool) -> Schedule | None:
    """Return the default schedule, or None for no op priorities."""
    return DEFAULT if enabled else None


def parse_strategy(name: str) -> StrategyName:
    """Return a factor propagation strategy by name.

    Raises:
        OptionError: there is none of that name.
    """
    for known in STRATEGIES:
        if name == known:
            return known
    hint = "use one of " + ", ".join(STRATEGIES)
    raise OptionError(Diagnostic("bad-option", f"unknown propagation strategy {name!r}", hint=hint))
