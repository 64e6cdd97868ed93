"""The runner of passes, over programs and over the modules of kernels; nothing else runs passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from attrs import evolve

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import load_shardings, store_shardings
from shardy_py.ir.graph.verify import refuse_branches, refuse_deep_nesting
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.support.gc_pause import no_garbage_collection
from shardy_py.transforms.snapshots import snapshot_writer
from shardy_py.transforms.stages import PassOver

_Subject = TypeVar("_Subject")


def run(
    subject: _Subject,
    passes: Iterable[PassOver[_Subject, Any]],
    context: Any,
    after_pass: Callable[[str, _Subject], None] | None = None,
) -> None:
    """Run passes over a program, or over the module of a kernel, in order, in place.

    Shardings of a program are in its table, before and after.

    Args:
        subject: The program or the module.
        passes: The passes; `shardy_py.transforms.plugin_passes.with_plugin_passes` adds those of plugins.
        context: The context of the passes. One of programs without a function for snapshots gets one.
        after_pass: Called after each pass with its name and the subject.

    Raises:
        ShardyError: a pass cannot handle the subject.
    """
    if isinstance(context, PassContext) and context.dump is None:
        context = evolve(context, dump=snapshot_writer(context.semantics))
    with no_garbage_collection():
        for item in passes:
            item.run(subject, context)
            if after_pass is not None:
                after_pass(item.name, subject)


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
