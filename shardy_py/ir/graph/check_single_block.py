"""Functions with several blocks: shardings follow regions and calls, not branches between blocks."""

from __future__ import annotations

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Program


def refuse_branches(program: Program) -> None:
    """Check that each function is one block.

    Raises:
        UnsupportedError: some have several; all of them are named.
    """
    problems = [
        Diagnostic(
            "several-blocks",
            f"the function has {len(region.blocks)} blocks, shardings cannot follow the branches between them",
            location=function.location,
            op=function.name,
            hint="write branches and loops as ops with regions, such as stablehlo.case and stablehlo.while",
        )
        for function in program.functions.values()
        for region in function.regions
        if len(region.blocks) > 1
    ]
    if problems:
        raise UnsupportedError(*problems)
