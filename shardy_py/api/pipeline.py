"""Engine options and pipeline that follow from the options of a propagation, for `propagate` and for sessions."""

from __future__ import annotations

from attrs import fields

from shardy_py.api.options import STRATEGIES, ProgramOptions
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.plugins import Registry
from shardy_py.propagation import PropagationOptions
from shardy_py.schedule.from_options import OpPriorities, ScheduleLike, make_schedule
from shardy_py.support.arguments import shown
from shardy_py.transforms.pipelines import PropagationPipeline
from shardy_py.transforms.upstream import JAXLIB

_COMMON = sorted({item.name for item in fields(ProgramOptions)} & {item.name for item in fields(PropagationPipeline)})
"""Options of a run that its pipeline has by the same name: who declares one in both places has connected them."""
_WITH_LEVELS = ("op-priority", "user-priority")


def engine_options(
    options: ProgramOptions,
    registry: Registry,
    *,
    schedule: ScheduleLike | None = None,
    op_priorities: OpPriorities | None = None,
) -> PropagationOptions:
    """Return the options of the engine.

    Args:
        options: The options of the propagation.
        registry: The plugins' own priorities and traits, and options of rules that were given with it.
        schedule: A `Schedule`, the path of a TOML file, or the name of a built-in one; None for the default with the
            plugins' priorities.
        op_priorities: Ops that come before the schedule.

    Raises:
        OptionError: the strategy is unknown, or it has no levels that a schedule could replace.
    """
    strategy = options.strategy
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
        schedule,
        op_priorities=op_priorities,
        plugin_priorities=registry.priorities,
        plugin_traits=registry.trait_names,
    )
    return PropagationOptions(
        schedule=levels if has_levels else None,
        strategy="basic" if strategy == "basic" else "aggressive",
        user_priorities=strategy == "user-priority",
        # A registry that is given brings options of its own.
        conservative=options.conservative or registry.options.conservative,
        keep_sharding_rules=True,
    )


def make_pipeline(
    options: ProgramOptions,
    *,
    explicit_collectives: bool,
    keep_sharding_rules: bool = False,
    upstream: str = JAXLIB,
) -> PropagationPipeline:
    """Return the pipeline of a run; an option that both have by one name goes from the run to the pipeline.

    Args:
        options: The options of the propagation.
        explicit_collectives: Whether all communication becomes explicit, also around ops without a rule.
        keep_sharding_rules: Whether rules stay on the ops.
        upstream: Whose behaviour is mirrored where versions differ; meshes keep their names.

    Raises:
        OptionError: options exclude each other.
    """
    if options.inline_calls and options.dedup_functions_fully:
        message = "inline_calls and dedup_functions_fully exclude each other: no call is left to share a function"
        raise OptionError(Diagnostic("option-conflict", message, hint="leave one of the two out"))
    return PropagationPipeline(
        keep_sharding_rules=keep_sharding_rules,
        enable_insert_explicit_collectives=explicit_collectives,
        reshard_ops_without_rule=explicit_collectives,
        update_non_divisible_input_output_shardings=not options.keep_uneven_shardings,
        upstream=upstream,
        inline_meshes="false",
        **{name: getattr(options, name) for name in _COMMON},
    )
