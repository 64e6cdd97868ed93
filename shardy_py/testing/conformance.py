"""Text in, text out: pipelines by their upstream names, for comparisons with the reference."""

from __future__ import annotations

from functools import cache

from shardy_py.api.pipeline import parse_pipeline, run_pipeline
from shardy_py.frontends.mlir import import_module, parse_module, print_module, verify_module, write_back
from shardy_py.ir.passes import PassContext
from shardy_py.plugins import Registry


@cache
def _semantics() -> Registry:
    return Registry.from_entry_points()


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
    run_pipeline(program, passes, PassContext(_semantics()))
    module = write_back(program)
    verify_module(module)
    return print_module(module)
