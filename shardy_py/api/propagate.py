"""Propagation from end to end: a program in, the same program with shardings out."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING

from shardy_py.api.coverage import require_coverage, survey_rules
from shardy_py.api.engine_options import engine_options
from shardy_py.api.keywords import takes
from shardy_py.api.main_function import find_main
from shardy_py.api.options import Options, PropagateArguments
from shardy_py.api.pipeline import make_pipeline
from shardy_py.api.progress import RunProgress
from shardy_py.api.result import Result
from shardy_py.api.run_input import give_shardings, make_semantics, read_input, reduced_shardings
from shardy_py.api.schedule_names import unknown_op_names
from shardy_py.api.written import write, write_verified
from shardy_py.extensions import function
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.shardings import store_shardings
from shardy_py.ir.graph.verify import refuse_deep_nesting
from shardy_py.ir.graph.verify_shardings import verify_manual_axes, verify_shardings
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.plugins import Registry
from shardy_py.plugins.type_definition import require_shapes
from shardy_py.propagation import PropagationOptions
from shardy_py.propagation.solve import Solution
from shardy_py.support.gc_pause import no_garbage_collection
from shardy_py.transforms.plugin_passes import with_plugin_passes
from shardy_py.transforms.propagate import PropagatePass
from shardy_py.transforms.run import run
from shardy_py.transforms.snapshots import AfterPass, snapshot_after_each, snapshot_writer
from shardy_py.values import define

if TYPE_CHECKING:
    from shardy_py.api.given_run import GivenRun
    from shardy_py.propagation.trace import VisitLog
    from shardy_py.trace.recording import Recording
    from shardy_py.trace.trace import Trace
    from shardy_py.transforms.constant_copies import CopyLog


@takes(PropagateArguments)
@no_garbage_collection(keep=True)
def propagate(given: PropagateArguments) -> Result:
    """Give every tensor of a program a sharding, starting from those the program and the caller give.

    Returns:
        The result; its ``module`` is the given one where that is an ``ir.Module`` or a ``ModuleOp``.

    Raises:
        ShardyError: the input or an option is not valid, or a plugin is broken; it carries the diagnostics.
    """
    registry = make_semantics(given, given.registry)
    engine = engine_options(given, registry, schedule=given.schedule, op_priorities=given.op_priorities)
    progress = RunProgress(given.on_stage, given.on_progress)
    if given.on_progress is not None:
        progress.total = _step_count(_passes(given, PropagatePass(engine), registry))
    progress.stage("import")
    again = _keep_given(given, registry) if given.trace else None
    read = read_input(given, registry, verify=given.verify, on_stage=progress.stage)
    program, main, registry = read.program, read.main, read.registry
    progress.finish_step()
    progress.stage("prepare")
    left_out = give_shardings(read, given)
    verify_manual_axes(program)
    if given.strict:
        require_shapes(left_out)
        require_coverage(program, registry)
    surveyed = survey_rules(program, registry)
    warnings = [*(registry.problems if given.registry is None else registry.notices), *left_out]
    warnings += unknown_op_names(
        engine.schedule,
        schedule=given.schedule,
        op_priorities=given.op_priorities,
        op_names=program.op_names,
        registry=registry,
    )
    warnings += reduced_shardings(read, given)
    copies = _make_copy_log(given, registry)
    context = PassContext(registry, warnings, copies=copies, dump=snapshot_writer(registry))
    recording = _Recording.of(program, main, context, engine) if given.trace else None
    log, keep = (None, None) if recording is None else (recording.log, recording.keep)
    passes = _passes(given, PropagatePass(engine, progress.stage, log, keep), registry)
    progress.total = _step_count(passes)
    with refuse_deep_nesting(main):
        run(program, passes, context, _after_pass(given, registry, progress))
        verify_shardings(program)
        store_shardings(program, registry)
        progress.stage("write")
        native = write_verified(program, passes, read.source_name) if given.verify else write(program)
    progress.finish_step()
    result = Result(
        module=native,
        program=program,
        main=find_main(program),
        registry=registry,
        surveyed=surveyed,
        warnings=(*context.warnings, *program.plugin_problems.values()),
        copies=copies.report(program) if given.record_copies and copies is not None else None,
        trace=None if recording is None else recording.trace,
        has_explicit_collectives=given.explicit_collectives or given.local,
        given=again,
        source_name=read.source_name,
        like=read.like,
        given_arguments=given,
        signature=read.signature,
    )
    if given.local:
        result.local()
    return result


def _keep_given(given: PropagateArguments, registry: Registry) -> GivenRun:
    """Return what a result needs to run again."""
    from shardy_py.api.given_run import keep_given

    return keep_given(given, registry)


def _make_copy_log(options: Options, registry: Registry) -> CopyLog | None:
    """Return the log of the constants that are copied, where it is needed."""
    if not options.record_copies and not options.trace:
        return None
    from shardy_py.transforms.constant_copies import CopyLog

    return CopyLog(registry)


def _passes(options: Options, propagation: PropagatePass, registry: Registry) -> tuple[Pass, ...]:
    """Return the passes of a run, with those of plugins."""
    explicit = options.explicit_collectives or options.local
    pipeline = make_pipeline(options, explicit_collectives=explicit, keep_sharding_rules=options.keep_sharding_rules)
    return with_plugin_passes(pipeline.passes_with(propagation), registry)


def _step_count(passes: Sized) -> int:
    """Return the number of steps of a run: its passes, and besides them to read the module and to write it."""
    return len(passes) + 2


def _after_pass(options: Options, registry: Registry, progress: RunProgress) -> AfterPass:
    """Return the function that is called after each pass: it writes snapshots and tells the caller."""
    directory = options.dump_directory
    observers = [] if directory is None else [snapshot_after_each(directory, registry)]
    observers += [] if options.on_pass is None else [options.on_pass]

    def after_pass(name: str, program: Program) -> None:
        for observer in observers:
            observer(name, program)
        progress.finish_step()
        if name == PropagatePass.name:
            progress.stage("finish")

    return after_pass


@define
class _Recording:
    """The recording of a run, and the trace that it becomes once the program is solved."""

    program: Program
    context: PassContext
    engine: PropagationOptions
    recording: Recording
    trace: Trace | None = None

    @classmethod
    def of(cls, program: Program, main: Op, context: PassContext, engine: PropagationOptions) -> _Recording:
        return cls(program, context, engine, function("recording")(program, main))

    @property
    def log(self) -> VisitLog:
        return self.recording.log

    def keep(self, solution: Solution) -> None:
        context = self.context
        self.trace = self.recording.finish(
            self.program, solution, self.engine.schedule, context.copies, context.semantics
        )
