"""Propagation from end to end: a program in, the same program with shardings out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from typing import TYPE_CHECKING, Any

from shardy_py.api.coverage import require_coverage, survey_rules
from shardy_py.api.keywords import takes
from shardy_py.api.main_function import find_main
from shardy_py.api.options import Options, PropagateArguments
from shardy_py.api.pipeline import engine_options, make_pipeline
from shardy_py.api.result import Result
from shardy_py.api.run_input import give_shardings, ignored_priorities, make_semantics, read_input, reduced_shardings
from shardy_py.api.schedule_names import unknown_op_names
from shardy_py.extensions import function
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.dynamic_sizes import put_stand_ins, take_stand_ins
from shardy_py.ir.graph.op_names import (
    CONSTANT,
    CONSTRAINT,
    DATA_FLOW_EDGE,
    FUNC_DATA_FLOW_EDGE,
    MESH,
    NAMED_COMPUTATION,
    REGION_RETURN,
    RESHARD,
    SHARDING_GROUP,
)
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.shardings import store_shardings
from shardy_py.ir.graph.verify import refuse_deep_nesting
from shardy_py.ir.graph.verify_shardings import verify_manual_axes, verify_shardings
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.plugins import Registry
from shardy_py.plugins.type_definition import require_shapes
from shardy_py.propagation import PropagationOptions
from shardy_py.propagation.engine import StageCallback
from shardy_py.propagation.solve import Solution
from shardy_py.support.gc_pause import no_garbage_collection
from shardy_py.transforms.plugin_passes import GuardedPass, with_plugin_passes
from shardy_py.transforms.propagate import PropagatePass
from shardy_py.transforms.run import run
from shardy_py.transforms.snapshots import AfterPass, snapshot_after_each, snapshot_writer
from shardy_py.values import define

if TYPE_CHECKING:
    from shardy_py.api.run_again import GivenRun
    from shardy_py.propagation.trace import VisitLog
    from shardy_py.trace.recording import Recording
    from shardy_py.trace.trace import Trace
    from shardy_py.transforms.constant_copies import CopyLog


ProgressCallback = Callable[[int, int, str], None]
"""Receiver of the number of steps that are done, of how many there are, and of the name of the stage."""


@define
class RunProgress:
    """The steps of a run: reading the module, each pass, writing the module.

    Args:
        on_stage: Called with the name of each stage as it starts.
        on_progress: Called as a stage starts, and after each step.
        total: The number of steps.
        done: The number of those that are done.
        name: The name of the stage.
    """

    on_stage: StageCallback | None
    on_progress: ProgressCallback | None
    total: int = 0
    done: int = 0
    name: str = ""

    def stage(self, name: str) -> None:
        """Start a stage."""
        self.name = name
        if self.on_stage is not None:
            self.on_stage(name)
        self._tell()

    def finish_step(self) -> None:
        """Record that a step is done."""
        self.done += 1
        if self.on_progress is not None:
            self._tell()

    def _tell(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self.done, self.total, self.name)


_WITHOUT_VERIFIER = frozenset(
    (
        *(MESH, CONSTANT, RESHARD, REGION_RETURN, SHARDING_GROUP, CONSTRAINT),
        *(DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE, NAMED_COMPUTATION),
    )
)
"""Ops of Shardy that ask for no more than what `verify_shardings` checks, and those that are taken out again."""


def write(program: Program) -> Any:
    """Bring the native module of a program up to date and return it."""
    return frontend_of(program).write_back(program)


def write_verified(program: Program, passes: Iterable[Pass], name: str) -> Any:
    """Bring the native module of a program up to date, let it verify itself, and return it.

    Shardings are no concern of the verifiers of most ops, so that only programs with collectives and other such ops of
    Shardy are verified, those that keep their rules, and those that passes of plugins changed.

    Args:
        program: The program, with its shardings in its attributes.
        passes: The passes that ran; those of plugins may have done anything.
        name: What locations call the source of the module.

    Raises:
        VerificationError: the module breaks an invariant of one of its ops.
    """
    frontend, module = frontend_of(program), write(program)
    if any(isinstance(item, GuardedPass) for item in passes) or program.rules or _has_verifiers(program):
        frontend.verify_native(module, name=name or "-")
    return module


def _has_verifiers(program: Program) -> bool:
    return any(op.startswith("sdy.") and op not in _WITHOUT_VERIFIER for op in program.op_names)


@takes(PropagateArguments)
@no_garbage_collection(keep=True)
def propagate(arguments: PropagateArguments) -> Result:
    """Give every tensor of a program a sharding, starting from those the program and the caller give.

    Returns:
        The result; its ``module`` is the given one where that is an ``ir.Module`` or a ``ModuleOp``.

    Raises:
        ShardyError: the input or an option is not valid, or a plugin is broken; it carries the diagnostics.
    """
    registry = make_semantics(arguments, arguments.registry)
    engine = engine_options(arguments, registry, schedule=arguments.schedule, op_priorities=arguments.op_priorities)
    progress = RunProgress(arguments.on_stage, arguments.on_progress)
    if arguments.on_progress is not None:
        progress.total = _step_count(_passes(arguments, PropagatePass(engine), registry))
    progress.stage("import")
    again = _keep_given(arguments, registry) if arguments.trace else None
    read = read_input(arguments, registry, verify=arguments.verify, on_stage=progress.stage)
    program, main, registry = read.program, read.main, read.registry
    progress.finish_step()
    progress.stage("prepare")
    left_out = give_shardings(read, arguments)
    has_dynamic_sizes = put_stand_ins(program)
    verify_manual_axes(program)
    if arguments.strict:
        require_shapes(left_out)
        require_coverage(program, registry)
    surveyed = survey_rules(program, registry)
    warnings = [*(registry.problems if arguments.registry is None else registry.notices), *left_out]
    warnings += unknown_op_names(
        engine.schedule,
        schedule=arguments.schedule,
        op_priorities=arguments.op_priorities,
        op_names=program.op_names,
        registry=registry,
    )
    warnings += (*reduced_shardings(read, arguments), *ignored_priorities(read, arguments))
    copies = _make_copy_log(arguments, registry)
    context = PassContext(registry, warnings, copies=copies, dump=snapshot_writer(registry))
    recording = _Recording.of(program, main, context, engine) if arguments.trace else None
    log, keep = (None, None) if recording is None else (recording.log, recording.keep)
    passes = _passes(arguments, PropagatePass(engine, progress.stage, log, keep), registry)
    progress.total = _step_count(passes)
    with refuse_deep_nesting(main):
        run(program, passes, context, _after_pass(arguments, registry, progress))
        verify_shardings(program)
        store_shardings(program, registry)
        if has_dynamic_sizes:
            take_stand_ins(program)
        progress.stage("write")
        native = write_verified(program, passes, read.source_name) if arguments.verify else write(program)
    # From here on the program is the caller's, who may change types.
    program.kinds_hold = False
    progress.finish_step()
    result = Result(
        module=native,
        program=program,
        main=find_main(program),
        registry=registry,
        surveyed=surveyed,
        warnings=(*context.warnings, *program.plugin_problems.values()),
        copies=copies.report(program) if arguments.record_copies and copies is not None else None,
        trace=None if recording is None else recording.trace,
        has_explicit_collectives=arguments.explicit_collectives or arguments.local,
        given=again,
        source_name=read.source_name,
        like=read.like,
        given_arguments=arguments,
        signature=read.signature,
    )
    if arguments.local:
        result.local()
    return result


def _keep_given(arguments: PropagateArguments, registry: Registry) -> GivenRun:
    """Return the arguments that a result needs to run again."""
    from shardy_py.api.run_again import keep_given

    return keep_given(arguments, registry)


def _make_copy_log(options: Options, registry: Registry) -> CopyLog | None:
    """Return the log of the constants that are copied, where it is needed."""
    if not options.record_copies and not options.trace:
        return None
    from shardy_py.transforms.constant_copies import CopyLog

    return CopyLog(registry)


def _passes(options: Options, propagation: PropagatePass, registry: Registry) -> tuple[Pass, ...]:
    """Return the passes of a run, with those of plugins."""
    explicit = options.explicit_collectives or options.local
    pipeline = make_pipeline(
        options,
        explicit_collectives=explicit,
        keep_sharding_rules=options.keep_sharding_rules,
        upstream=options.upstream,
    )
    return with_plugin_passes(pipeline.passes_with(propagation), registry)


def _step_count(passes: Sized) -> int:
    """Return the number of steps of a run: its passes, and besides them to read the module and to write it."""
    return len(passes) + 2


def _after_pass(options: Options, registry: Registry, progress: RunProgress) -> AfterPass:
    """Return the function that is called after each pass: it writes snapshots and calls the caller's function."""
    directory = options.dump_directory
    observers = [] if directory is None else [snapshot_after_each(directory, registry)]
    on_pass = options.on_pass

    def after_pass(name: str, program: Program) -> None:
        for observer in observers:
            observer(name, program)
        if on_pass is not None:
            # The caller's function may give values other types.
            program.kinds_hold = False
            on_pass(name, program)
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
