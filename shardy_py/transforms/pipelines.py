"""The whole pipeline: preparation, propagation, and finishing, with functions copied for each call or shared by all.

A pipeline is a value: passes, each with the reason why it stands where it stands.

Mirrors upstream's `addPropagationPipeline`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from attrs import field, fields_dict

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.interfaces.passes import NO_TEXT, Pass
from shardy_py.plugins import Registry
from shardy_py.transforms.export_pipeline import ExportPipeline
from shardy_py.transforms.finish.export_named_computations import ExportNamedComputationsPass
from shardy_py.transforms.finish.insert_func_call_reshards import InsertFuncCallReshardsPass, PropagateToFuncResultsPass
from shardy_py.transforms.finish.sink_data_flow_edges import SinkFuncDataFlowEdgesPass
from shardy_py.transforms.finish.unflatten_call_graph import UnflattenCallGraphPass
from shardy_py.transforms.import_pipeline import ImportPipeline, constraint_stages
from shardy_py.transforms.plugin_passes import with_plugin_passes
from shardy_py.transforms.prepare.add_data_flow_edges import AddFuncDataFlowEdgesPass
from shardy_py.transforms.prepare.flatten_call_graph import FlattenCallGraphPass, PreOrderFuncsPass
from shardy_py.transforms.prepare.import_func_calls import ImportFuncCallsPass
from shardy_py.transforms.prepare.symbol_dce import SymbolDcePass
from shardy_py.transforms.propagate import UserPriorityPropagationPass
from shardy_py.transforms.run import PassPipeline, Stage
from shardy_py.transforms.upstream import JAXLIB, check_inline_meshes, check_upstream
from shardy_py.values import frozen

_ENGINE_OPTIONS = ("conservative_propagation", "propagation_strategy", "run_op_priority_propagation")


@frozen
class PropagationPipeline(PassPipeline):
    """Everything: a program with some shardings in, one with all shardings and explicit reshards out.

    Args:
        dedup_functions_fully: Whether all calls of a function share its sharding; otherwise functions are copied
            for propagation, and copies that end up alike are united.
        keep_sharding_rules: Whether rules stay on the ops.
        dump_directory: Where snapshots go; none by default.
        conservative_propagation: Whether ops may not introduce sub-axes or uneven shards.
        debug_sharding_origins: Whether to find out which annotation each axis goes back to.
        debug_propagation_edge_sharding: Whether to find out how axes went through each op.
        propagation_strategy: The strategy within an op: ``basic``, ``aggressive`` or ``basic-then-aggressive``.
        run_op_priority_propagation: Whether ops propagate level by level.
        avoid_export_for_partitioning: Whether to stop where the program can still be propagated again.
        enable_insert_explicit_collectives: Whether to make all communication explicit, as collectives.
        reshard_ops_without_rule: Whether that is so around ops without a rule, too, which the reference leaves alone.
        remove_all_gather_reduce_scatter_for_cmv1: Whether to drop some of these collectives again.
        update_non_divisible_input_output_shardings: Whether shardings of inputs and outputs must divide their sizes.
        enable_explicit_gather_scatter_batching: Whether batch dimensions that are indexed by an iota become batching
            dimensions; needs a plugin with a pass for it.
        inline_calls: Whether the bodies of functions are put in the places of their calls first.
        upstream: Whose behaviour is mirrored where versions differ: ``0.10.2`` of jaxlib, or ``head``.
        inline_meshes: Whether shardings get their meshes in place of names at the end, ``true`` or ``false``; with
            ``upstream`` it is so at ``head`` only.
        engine: The pass that propagates, with its options; by default the reference's, with the options above.
    """

    name: ClassVar[str] = "sdy-propagation-pipeline"

    dedup_functions_fully: bool = False
    keep_sharding_rules: bool = False
    dump_directory: str = ""
    conservative_propagation: bool = False
    debug_sharding_origins: bool = False
    debug_propagation_edge_sharding: bool = False
    propagation_strategy: str = "aggressive"
    run_op_priority_propagation: bool = True
    avoid_export_for_partitioning: bool = False
    enable_insert_explicit_collectives: bool = False
    reshard_ops_without_rule: bool = False
    remove_all_gather_reduce_scatter_for_cmv1: bool = False
    update_non_divisible_input_output_shardings: bool = True
    enable_explicit_gather_scatter_batching: bool = False
    inline_calls: bool = False
    upstream: str = field(default=JAXLIB, validator=check_upstream)
    inline_meshes: str = field(default="upstream", validator=check_inline_meshes)
    engine: Pass | None = field(default=None, metadata=NO_TEXT)

    def __attrs_post_init__(self) -> None:
        """Check that no option of the reference's engine stands beside another engine.

        Raises:
            OptionError: one does.
        """
        if self.engine is None:
            return
        defaults = fields_dict(PropagationPipeline)
        changed = [name for name in _ENGINE_OPTIONS if getattr(self, name) != defaults[name].default]
        if changed:
            message = f"engine and {' and '.join(changed)} exclude each other"
            raise OptionError(Diagnostic("option-conflict", message, hint="give the engine these options"))

    def stages(self) -> tuple[Stage, ...]:
        """Return the passes in order, with reasons."""
        return (*self._before(), Stage(self._propagation(), "propagation"), *self._after())

    def passes_with(self, engine: Pass) -> tuple[Pass, ...]:
        """Return the passes in order, with a pass that propagates in the place of this pipeline's."""
        passes, index = _with_place(self)
        return (*passes[:index], engine, *passes[index + 1 :])

    def before_propagation(self, registry: Registry) -> tuple[Pass, ...]:
        """Return the passes before propagation, with those of plugins."""
        passes, index = self._divide(registry)
        return passes[:index]

    def after_propagation(self, registry: Registry) -> tuple[Pass, ...]:
        """Return the passes after propagation, with those of plugins."""
        passes, index = self._divide(registry)
        return passes[index + 1 :]

    def _divide(self, registry: Registry) -> tuple[tuple[Pass, ...], int]:
        """Return all passes, with those of plugins, and the position of propagation."""
        passes = with_plugin_passes(self.passes, registry)
        return passes, passes.index(self._propagation())

    def _before(self) -> tuple[Stage, ...]:
        return (
            *(self._inline() if self.inline_calls else ()),
            *self._import().stages(),
            *(self._tie_shared_functions() if self.dedup_functions_fully else self._copy_functions()),
            Stage(PreOrderFuncsPass(), "last before propagation, which begins at the top: callers before callees"),
        )

    def _inline(self) -> tuple[Stage, ...]:
        from shardy_py.transforms.prepare.inline_calls import InlineCallsPass

        return (Stage(InlineCallsPass(), "first: all others find the program that one would write without calls"),)

    def _after(self) -> tuple[Stage, ...]:
        return (
            *(self._untie_shared_functions() if self.dedup_functions_fully else self._unite_functions()),
            Stage(UnflattenCallGraphPass(), "once functions have the shardings by which they are compared"),
            Stage(SymbolDcePass(keep_main=True), "after calls were redirected: copies without a call go"),
            Stage(InsertFuncCallReshardsPass(), "once it is settled which function each call calls"),
            *self._export().stages(),
        )

    def _copy_functions(self) -> tuple[Stage, ...]:
        """Return the passes before propagation when each call has a function of its own."""
        return (
            Stage(FlattenCallGraphPass(), "before the bodies are taken: each call takes one"),
            Stage(SymbolDcePass(keep_main=True), "after copying: only functions that are called are worth importing"),
            Stage(ImportFuncCallsPass(), "so that propagation goes through calls as through any op with a region"),
            Stage(SymbolDcePass(keep_main=True), "after the bodies were taken"),
            *constraint_stages(
                debug_sharding_origins=self.debug_sharding_origins,
                debug_propagation_edge_sharding=self.debug_propagation_edge_sharding,
            ),
        )

    def _unite_functions(self) -> tuple[Stage, ...]:
        """Return the passes after propagation when each call had a function of its own."""
        return (
            Stage(ExportNamedComputationsPass(), "before functions can be compared, they must be functions again"),
            Stage(PropagateToFuncResultsPass(), "before functions are compared, by their results, too"),
        )

    def _tie_shared_functions(self) -> tuple[Stage, ...]:
        """Return the passes before propagation when all calls of a function share it."""
        return (Stage(AddFuncDataFlowEdgesPass(), "after all that looks at users of arguments and results"),)

    def _untie_shared_functions(self) -> tuple[Stage, ...]:
        """Return the passes after propagation when all calls of a function share it."""
        return (
            Stage(PropagateToFuncResultsPass(), "while edges still carry the shardings of what is returned"),
            Stage(SinkFuncDataFlowEdgesPass(), "before calls and functions are compared"),
        )

    def _import(self) -> ImportPipeline:
        return ImportPipeline(
            dedup_functions_fully=self.dedup_functions_fully,
            dump_directory=self.dump_directory,
            dump_index=1,
            debug_sharding_origins=self.debug_sharding_origins,
            debug_propagation_edge_sharding=self.debug_propagation_edge_sharding,
            enable_explicit_gather_scatter_batching=self.enable_explicit_gather_scatter_batching,
        )

    def _propagation(self) -> Pass:
        if self.engine is not None:
            return self.engine
        return UserPriorityPropagationPass(
            keep_sharding_rules=True,
            module_dump_directory=self.dump_directory,
            conservative_propagation=self.conservative_propagation,
            debug_sharding_origins=self.debug_sharding_origins,
            debug_propagation_edge_sharding=self.debug_propagation_edge_sharding,
            propagation_strategy=self.propagation_strategy,
            run_op_priority_propagation=self.run_op_priority_propagation,
            dump_index=2,
        )

    def _export(self) -> ExportPipeline:
        return ExportPipeline(
            dump_directory=self.dump_directory,
            dump_index=2,
            avoid_export_for_partitioning=self.avoid_export_for_partitioning,
            enable_insert_explicit_collectives=self.enable_insert_explicit_collectives,
            reshard_ops_without_rule=self.reshard_ops_without_rule,
            remove_all_gather_reduce_scatter_for_cmv1=self.remove_all_gather_reduce_scatter_for_cmv1,
            keep_sharding_rules=self.keep_sharding_rules,
            dump_sharding_origins=self.debug_sharding_origins,
            dump_propagation_edges=self.debug_propagation_edge_sharding,
            update_non_divisible_input_output_shardings=self.update_non_divisible_input_output_shardings,
            upstream=self.upstream,
            inline_meshes=self.inline_meshes,
        )


@lru_cache(maxsize=64)
def _with_place(pipeline: PropagationPipeline) -> tuple[tuple[Pass, ...], int]:
    """Return the passes of a pipeline, and the position of propagation; passes are values, so one list serves all."""
    passes = pipeline.passes
    return passes, passes.index(pipeline._propagation())
