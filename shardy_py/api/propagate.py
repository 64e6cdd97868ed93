"""Propagation from end to end: a program in, the same program with shardings out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardy_py.api.coverage import require_coverage, survey_rules
from shardy_py.api.foreign_types import require_shapes
from shardy_py.api.given_shardings import InShardings, OutShardings
from shardy_py.api.main_function import find_main
from shardy_py.api.options import Strategy, propagation_options
from shardy_py.api.result import Result
from shardy_py.api.run_input import give_shardings, make_semantics
from shardy_py.api.schedule_names import unknown_op_names
from shardy_py.api.source import complete_registry, read_program, source_name
from shardy_py.api.written import write_verified
from shardy_py.arguments import checked
from shardy_py.ir.constant_copies import CopyLog
from shardy_py.ir.gc_pause import no_garbage_collection
from shardy_py.ir.graph import Op, Program
from shardy_py.ir.nesting import refuse_deep_nesting
from shardy_py.ir.passes import PassContext
from shardy_py.ir.shardings import store_shardings
from shardy_py.ir.verify_shardings import verify_manual_axes, verify_shardings
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.propagation.engine import StageCallback
from shardy_py.propagation.solve import Solution
from shardy_py.schedule.given import OpPriorities, ScheduleLike
from shardy_py.transforms.pipelines import PropagationPipeline
from shardy_py.transforms.plugin_passes import with_plugin_passes
from shardy_py.transforms.propagate import PropagatePass
from shardy_py.transforms.run import run
from shardy_py.transforms.snapshots import AfterPass, snapshot_after_each

if TYPE_CHECKING:
    from shardy_py.explain.record.recording import Recording
    from shardy_py.explain.record.trace import Trace

PassCallback = AfterPass


@checked
@no_garbage_collection(keep=True)
def propagate(
    module: Any,
    mesh: Any = None,
    *,
    in_shardings: InShardings | None = None,
    out_shardings: OutShardings | None = None,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    strategy: Strategy = "user-priority",
    schedule: ScheduleLike | None = None,
    op_priorities: OpPriorities | None = None,
    conservative: bool = False,
    keep_sharding_rules: bool = False,
    extended_rules: bool = False,
    strict: bool = False,
    dedup_functions_fully: bool = False,
    inline_calls: bool = False,
    explicit_collectives: bool = False,
    record_copies: bool = False,
    trace: bool = False,
    dump_directory: str | Path | None = None,
    on_pass: PassCallback | None = None,
    registry: Registry | None = None,
    plugins: Iterable[object] = (),
    strict_plugins: bool = False,
    on_stage: StageCallback | None = None,
) -> Result:
    """Give every tensor of a program a sharding, starting from those the program and the caller give.

    Args:
        module: MLIR text or bytecode (also a portable artifact of StableHLO), HLO text, a path, an ``ir.Module`` of
            jaxlib, a ``Lowered``, ``Traced`` or ``Exported`` of JAX or a serialized ``Exported``, a jitted function
            with ``args``, a ``ModuleOp`` of xDSL, or the path of an ``.xdsl`` file.
        mesh: For a module without a mesh: a `Mesh`, a mapping of axis sizes, or a mesh of JAX.
        in_shardings: Shardings of arguments, by number or name or as a flat list, each a PartitionSpec, a tuple of
            axis names, a NamedSharding, a `TensorSharding` or its text. They replace those the module has.
        out_shardings: Shardings of results, by number, by name (``"result0"``, or as JAX calls them) or as a flat
            list, in the same forms.
        args: Example arguments of a jitted function: arrays or `jax.ShapeDtypeStruct`.
        kwargs: Example arguments by keyword.
        strategy: ``basic``, ``aggressive``, ``op-priority`` or ``user-priority``; each includes those before it.
        schedule: The levels of the op-priority strategy, in place of the default ones: a `Schedule`, the
            ``pathlib.Path`` of a TOML file, or the name of a built-in one.
        op_priorities: Ops that come before all others, as lists of names, globs, traits or selectors, one per level.
        conservative: Leave out factors that could be sharded unevenly.
        keep_sharding_rules: Leave the rule of each op on it as an attribute.
        extended_rules: Give rules to ops that the reference leaves without one.
        strict: Refuse a program with ops that have no rule, or types of dialects that no plugin defines.
        dedup_functions_fully: Let all calls of a function share its shardings; otherwise each call may have its own,
            and functions are copied where they end up different.
        inline_calls: Put the bodies of functions in the places of their calls first, as XLA does before it propagates.
        explicit_collectives: Make all communication explicit, as collective ops; otherwise only what a partitioner
            could not find itself.
        trace: Take down what propagates and what does not, for `Result.trace` and `Result.explain`.
        record_copies: Take down which copies of constants are made, for `Result.copies`.
        dump_directory: Where to write the module after every pass, as ``NN.pass-name.mlir``. An ``ir.Module`` that
            is given changes with every one of them, otherwise once, at the end.
        on_pass: Called after every pass.
        registry: What is known about ops; by default that of the installed plugins.
        plugins: More plugins besides the installed ones: modules or objects with hook implementations.
        strict_plugins: Whether what is wrong with an installed plugin is an error; otherwise a warning.
        on_stage: Called as each stage starts, for a progress display: import, prepare, compile, solve, finish, write.

    Returns:
        The result; its ``module`` is the given one where that is an ``ir.Module`` or a ``ModuleOp``.

    Raises:
        ShardyError: the input or an option is not valid, or a plugin is broken; it carries the diagnostics.
    """
    stage = on_stage or _no_display
    rule_options = RuleOptions(conservative, extended_rules)
    semantics = make_semantics(registry, plugins, rule_options, strict_plugins=strict_plugins)
    options = propagation_options(
        strategy=strategy,
        conservative=conservative,
        keep_sharding_rules=keep_sharding_rules,
        schedule=schedule,
        op_priorities=op_priorities,
        plugin_priorities=semantics.priorities,
        plugin_traits=semantics.trait_names,
    )
    stage("import")
    if args is not None or kwargs is not None:
        from shardy_py.frontends.jax_modules import lower_function

        module = lower_function(module, args or (), kwargs or {})
    program = read_program(module, semantics)
    semantics = complete_registry(program, semantics)
    main = find_main(program, source=source_name(module))
    stage("prepare")
    left_out = give_shardings(
        program, main, semantics, mesh=mesh, in_shardings=in_shardings, out_shardings=out_shardings
    )
    verify_manual_axes(program)
    if strict:
        require_shapes(left_out)
        require_coverage(program, semantics)
    surveyed = survey_rules(program, semantics)
    recording = _start_recording(program, main) if trace else None
    traces: list[Trace] = []

    def keep_trace(solution: Solution) -> None:
        if recording is not None:
            traces.append(recording.finish(program, solution, options.schedule, context.copies, semantics))

    pipeline = PropagationPipeline(
        dedup_functions_fully=dedup_functions_fully,
        keep_sharding_rules=keep_sharding_rules,
        enable_insert_explicit_collectives=explicit_collectives,
        reshard_ops_without_rule=explicit_collectives,
        inline_calls=inline_calls,
        engine=PropagatePass(options, stage, None if recording is None else recording.log, keep_trace),
    )
    context = PassContext(
        semantics,
        [*(semantics.problems if registry is None else semantics.notices), *left_out],
        copies=CopyLog(semantics) if record_copies or trace else None,
    )
    context.warnings.extend(
        unknown_op_names(
            options.schedule, schedule=schedule, op_priorities=op_priorities, program=program, registry=semantics
        )
    )
    observers = [] if dump_directory is None else [snapshot_after_each(dump_directory, semantics)]
    observers += [] if on_pass is None else [on_pass]

    def after_pass(name: str, program: Program) -> None:
        for observer in observers:
            observer(name, program)
        if name == PropagatePass.name:
            stage("finish")

    with refuse_deep_nesting(main):
        run(program, with_plugin_passes(pipeline.passes, semantics), context, after_pass)
        verify_shardings(program)
        store_shardings(program, semantics)
        stage("write")
        native = write_verified(program, semantics, source_name(module))
    return Result(
        module=native,
        program=program,
        main=find_main(program),
        registry=semantics,
        surveyed=surveyed,
        warnings=(*context.warnings, *program.plugin_problems.values()),
        copies=context.copies.report(program) if record_copies and context.copies is not None else None,
        trace=traces[0] if traces else None,
    )


def _start_recording(program: Program, main: Op) -> Recording:
    from shardy_py.explain.record.recording import Recording

    return Recording(program, main)


def _no_display(stage: str) -> None:
    """Show nothing."""
