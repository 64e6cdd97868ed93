"""Pipeline that follows from the options of a propagation, for `propagate` and for sessions."""

from __future__ import annotations

from attrs import fields

from shardy_py.api.options import ProgramOptions
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.transforms.pipelines import PropagationPipeline

_COMMON = sorted({item.name for item in fields(ProgramOptions)} & {item.name for item in fields(PropagationPipeline)})
"""Options of a run that its pipeline has by the same name: who declares one in both places has connected them."""


def make_pipeline(
    options: ProgramOptions, *, explicit_collectives: bool, keep_sharding_rules: bool = False
) -> PropagationPipeline:
    """Return the pipeline of a run; an option that both have by one name goes from the run to the pipeline.

    Args:
        options: The options of the propagation.
        explicit_collectives: Whether all communication becomes explicit, also around ops without a rule.
        keep_sharding_rules: Whether rules stay on the ops.

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
        **{name: getattr(options, name) for name in _COMMON},
    )
