"""The runner of passes; `propagate`, sessions, sweeps and ``shardy-opt`` run their passes here."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from shardy_py.ir.graph.check_single_block import refuse_branches
from shardy_py.ir.graph.nesting import refuse_deep_nesting
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import load_shardings, store_shardings
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.support.gc_pause import no_garbage_collection
from shardy_py.transforms.snapshots import AfterPass, snapshot_writer


def run(program: Program, passes: Iterable[Pass], context: PassContext, after_pass: AfterPass | None = None) -> None:
    """Run passes over a program in order, in place.

    Shardings are in the table of the program, before and after.

    Args:
        program: The program.
        passes: The passes; `shardy_py.transforms.plugin_passes.with_plugin_passes` adds those of plugins.
        context: The context of the passes. Without a function for snapshots it gets one.
        after_pass: Called after each pass with its name and the program.

    Raises:
        ShardyError: a pass cannot handle the program.
    """
    if context.dump is None:
        context = evolve(context, dump=snapshot_writer(context.semantics))
    with no_garbage_collection():
        for item in passes:
            item.run(program, context)
            if after_pass is not None:
                after_pass(item.name, program)


@no_garbage_collection(keep=True)
@refuse_deep_nesting()
def run_on_attributes(program: Program, passes: Iterable[Pass], context: PassContext) -> None:
    """Run passes over a program whose shardings are in the attributes of its ops, before and after.

    Args:
        program: The program.
        passes: The passes.
        context: The context of the passes.

    Raises:
        ShardyError: a pass cannot handle the program.
    """
    refuse_branches(program)
    load_shardings(program, context.semantics)
    run(program, passes, context)
    store_shardings(program, context.semantics)
