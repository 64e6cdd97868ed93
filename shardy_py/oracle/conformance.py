"""Text in, text out: pipelines by their upstream names, for comparisons with the reference."""

from __future__ import annotations

from functools import cache

from attrs import evolve

from shardy_py.frontends.mlir import import_module, parse_module, print_module, verify_module, write_back
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.transforms.pass_names import parse_pipeline
from shardy_py.transforms.run import run_on_attributes

REFERENCE_DIALECTS = ("chlo.", "func.", "sdy.", "stablehlo.")
"""The dialects whose ops the reference has rules for; of others it knows the traits only."""


@cache
def reference_registry() -> Registry:
    """Return the installed plugins with rules for the reference's dialects only, so that both do the same work."""
    registry = Registry.from_entry_points()
    definitions = tuple(
        item
        if item.name.startswith(REFERENCE_DIALECTS) or item.data_flow is not None or item.is_glob
        else evolve(item, rule=_no_rule)
        for item in registry.definitions
    )
    return evolve(registry, definitions=definitions)


def _no_rule(op: Op) -> None:
    """Return no rule."""


def run(text: str, pipeline: str) -> str:
    """Return a module after a pipeline, printed as the reference prints it.

    Args:
        text: The module; unregistered dialects are accepted.
        pipeline: Comma-separated passes by their upstream names, with options in braces.

    Raises:
        ShardyError: the text or the pipeline is malformed, or a pass cannot handle the program.
    """
    passes = parse_pipeline(pipeline)
    program = import_module(parse_module(text))
    run_on_attributes(program, passes, PassContext(reference_registry()))
    module = write_back(program)
    verify_module(module)
    return print_module(module)
