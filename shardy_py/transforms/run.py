"""Pass pipelines: their text, and running them.

The text is MLIR's: ``sdy-a{option=1},sdy-b``, with or without the anchors ``builtin.module(...)`` and
``func.func(...)``, which make no difference here: every pass knows itself what it runs on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from attrs import evolve, frozen

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.files import write_atomically
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.check_single_block import refuse_branches
from shardy_py.ir.gc_pause import no_garbage_collection
from shardy_py.ir.graph import Program
from shardy_py.ir.interfaces import OpSemantics
from shardy_py.ir.nesting import refuse_deep_nesting
from shardy_py.ir.passes import Pass, PassContext, make_pass, split_options, unknown_name
from shardy_py.ir.shardings import load_shardings, store_shardings
from shardy_py.plugins import Registry
from shardy_py.plugins.installed import installed_registry
from shardy_py.transforms.guarded_pass import guard_pass
from shardy_py.transforms.pipeline import PassPipeline

ANCHORS = ("any", "builtin.module", "func.func")

PASSES = {
    "sdy-close-shardings": "finish.close_shardings:CloseShardingsPass",
    "sdy-drop-sharding-and-mesh": "finish.drop_sharding_and_mesh:DropShardingAndMeshPass",
    "sdy-drop-sharding-rules": "finish.drop_sharding_rules:DropShardingRulesPass",
    "sdy-remove-all-gather-reduce-scatter-for-cmv1": (
        "finish.remove_all_gather_reduce_scatter_for_cmv1:RemoveAllGatherReduceScatterForCMV1Pass"
    ),
    "sdy-remove-propagation-debug-info": ("finish.remove_propagation_debug_info:RemovePropagationDebugInfoPass"),
    "sdy-remove-sharding-groups": "finish.remove_sharding_groups:RemoveShardingGroupsPass",
    "sdy-remove-sub-axes-in-input-output-shardings": (
        "finish.remove_sub_axes_in_input_output_shardings:RemoveSubAxesInInputOutputShardingsPass"
    ),
    "sdy-update-non-divisible-input-output-shardings": (
        "finish.update_non_divisible_input_output_shardings:UpdateNonDivisibleInputOutputShardingsPass"
    ),
    "sdy-canonicalize-collectives": "finish.canonicalize_collectives:CanonicalizeCollectivesPass",
    "sdy-add-data-flow-edges": "prepare.add_data_flow_edges:AddDataFlowEdgesPass",
    "sdy-add-func-data-flow-edges": "prepare.add_func_data_flow_edges:AddFuncDataFlowEdgesPass",
    "sdy-aggressive-propagate": "propagate:AggressivePropagationPass",
    "sdy-apply-sharding-constraints": "prepare.apply_sharding_constraints:ApplyShardingConstraintsPass",
    "sdy-basic-propagate": "propagate:BasicPropagationPass",
    "sdy-canonicalize-reshards": "finish.canonicalize_reshards:CanonicalizeReshardsPass",
    "sdy-constant-or-scalar-merger": "finish.constant_or_scalar_merger:ConstantOrScalarMergerPass",
    "sdy-constant-or-scalar-splitter": "prepare.constant_or_scalar_splitter:ConstantOrScalarSplitterPass",
    "sdy-export-named-computations": "finish.export_named_computations:ExportNamedComputationsPass",
    "sdy-flatten-call-graph": "prepare.flatten_call_graph:FlattenCallGraphPass",
    "inline-calls": "prepare.inline_calls:InlineCallsPass",
    "sdy-import-func-calls": "prepare.import_func_calls:ImportFuncCallsPass",
    "sdy-insert-explicit-reshards": "finish.insert_explicit_reshards:InsertExplicitReshardsPass",
    "sdy-insert-func-call-reshards": "finish.insert_func_call_reshards:InsertFuncCallReshardsPass",
    "sdy-op-priority-propagate": "propagate:OpPriorityPropagationPass",
    "sdy-populate-op-sharding-rules": "populate_op_sharding_rules:PopulateOpShardingRulesPass",
    "sdy-propagate-to-func-results": "finish.propagate_to_func_results:PropagateToFuncResultsPass",
    "sdy-sharding-constraint-to-reshard": ("finish.sharding_constraint_to_reshard:ShardingConstraintToReshardPass"),
    "sdy-sharding-group-import": "prepare.import_sharding_groups:ShardingGroupImportPass",
    "sdy-reshard-to-collectives": "finish.reshard_to_collectives:ReshardToCollectivesPass",
    "sdy-sink-data-flow-edges": "finish.sink_data_flow_edges:SinkDataFlowEdgesPass",
    "sdy-sink-func-data-flow-edges": "finish.sink_func_data_flow_edges:SinkFuncDataFlowEdgesPass",
    "sdy-unflatten-call-graph": "finish.unflatten_call_graph:UnflattenCallGraphPass",
    "sdy-user-priority-propagate": "propagate:UserPriorityPropagationPass",
    "sdy-verify-unreduced-axes": "finish.verify_unreduced_axes:VerifyUnreducedAxesPass",
    "canonicalize": "run:CanonicalizePass",
    "symbol-dce": "prepare.symbol_dce:SymbolDcePass",
    "sdy-export-pipeline": "pipelines:ExportPipeline",
    "sdy-import-pipeline": "pipelines:ImportPipeline",
    "sdy-propagation-pipeline": "pipelines:PropagationPipeline",
    "sdy-inline-meshes": "finish.inline_meshes:InlineMeshesPass",
    "sdy-lift-inlined-meshes": "prepare.lift_inlined_meshes:LiftInlinedMeshesPass",
    "sdy-manual-axes-cleanup": "prepare.manual_axes_cleanup:ManualAxesCleanupPass",
    "sdy-pre-order-funcs": "prepare.pre_order_funcs:PreOrderFuncsPass",
    "sdy-propagate-sharding-from-func-to-call": (
        "prepare.propagate_sharding_from_func_to_call:PropagateShardingFromFuncToCallPass"
    ),
    "sdy-remove-size-one-axes": "prepare.remove_size_one_axes:RemoveSizeOneAxesPass",
}
"""Name to the class of every pass; imported when asked for."""


class _NativePass:
    """A generic pass that MLIR itself runs; shardings go through the attributes."""

    name: ClassVar[str]

    def run(self, program: Program, context: PassContext) -> None:
        """Rewrite in place; the contents of the program are replaced."""
        store_shardings(program, context.semantics)
        frontend_of(program).run_native_pass(program, self.name)
        load_shardings(program, context.semantics)


@frozen
class CanonicalizePass(_NativePass):
    """Fold and simplify ops by their own patterns."""

    name: ClassVar[str] = "canonicalize"


def get_pass(name: str, registry: Registry | None = None) -> type[Pass]:
    """Return the class of a pass.

    Args:
        name: The name of the pass, one of `PASSES` or of a plugin.
        registry: Where to look for passes of plugins; by default in the installed ones.

    Raises:
        OptionError: there is no pass of that name.
    """
    found = find_pass(name, registry)
    if found is None:
        known = [*PASSES, *(registry or installed_registry(skip_broken=True)).passes]
        raise OptionError(unknown_name("unknown-pass", f"there is no pass {name!r}", name, known))
    return found


def find_pass(name: str, registry: Registry | None = None) -> type[Pass] | None:
    """Return the class of a pass, or None if there is none; as `get_pass`."""
    path = PASSES.get(name)
    if path is None:
        return (registry or installed_registry(skip_broken=True)).passes.get(name)
    module, class_ = path.split(":")
    return getattr(import_module(f"shardy_py.transforms.{module}"), class_)


def parse_pass(name: str, options: str = "", *, registry: Registry | None = None) -> Pass:
    """Return a pass from its name and the text of its options, ``a=1 b=2``.

    Raises:
        OptionError: an unknown pass or option, or a value that does not fit.
    """
    class_, values = get_pass(name, registry), split_options(options)
    if name in PASSES:
        return make_pass(class_, values)
    known = registry or installed_registry(skip_broken=True)
    return guard_pass(name, class_, known, lambda: make_pass(class_, values))


def parse_pipeline(text: str, *, registry: Registry | None = None) -> tuple[Pass, ...]:
    """Return the passes of a pipeline, in order; `get_pass` says what the registry is for.

    >>> [item.name for item in parse_pipeline("builtin.module(sdy-add-data-flow-edges,func.func(sdy-basic-propagate))")]
    ['sdy-add-data-flow-edges', 'sdy-basic-propagate']

    Raises:
        OptionError: malformed text, an unknown pass or option, or a value that does not fit.
    """
    return tuple(_parse_items(text, registry))


def _parse_items(text: str, registry: Registry | None) -> Iterable[Pass]:
    for item in _split(text):
        anchor = next((anchor for anchor in ANCHORS if item.startswith(f"{anchor}(") and item.endswith(")")), None)
        if anchor is not None:
            yield from _parse_items(item[len(anchor) + 1 : -1], registry)
            continue
        name, brace, options = item.partition("{")
        if brace and not options.endswith("}"):
            raise _malformed(text, f"{item!r} has no closing brace")
        found = parse_pass(name.strip(), options[:-1], registry=registry)
        yield from found.passes if isinstance(found, PassPipeline) else (found,)


def _split(text: str) -> Sequence[str]:
    """Split at the commas outside parentheses and braces."""
    items, depth, start = [], 0, 0
    for position, char in enumerate(text):
        if char in "({":
            depth += 1
        elif char in ")}":
            depth -= 1
            if depth < 0:
                raise _malformed(text, f"there is a {char!r} too many")
        elif char == "," and depth == 0:
            items.append(text[start:position].strip())
            start = position + 1
    if depth:
        raise _malformed(text, "a closing parenthesis or brace is missing")
    items.append(text[start:].strip())
    if items == [""]:
        return ()
    if "" in items:
        raise _malformed(text, "a pass name is missing")
    return items


def _malformed(text: str, message: str) -> OptionError:
    return OptionError(Diagnostic("malformed-pipeline", f"{message} in the pipeline {text!r}"))


@no_garbage_collection(keep=True)
@refuse_deep_nesting()
def run_pipeline(program: Program, passes: Iterable[Pass], context: PassContext) -> None:
    """Run passes over a program: shardings from its attributes into the table, and back at the end."""
    refuse_branches(program)
    load_shardings(program, context.semantics)
    if context.dump is None:
        context = evolve(context, dump=snapshot_writer(context.semantics))
    for item in passes:
        item.run(program, context)
    store_shardings(program, context.semantics)


def snapshot_writer(semantics: OpSemantics) -> Callable[[Program, Path], None]:
    """Return the function with which passes write programs to files, as MLIR text."""

    def write(program: Program, path: Path) -> None:
        store_shardings(program, semantics)
        frontend = frontend_of(program)
        write_atomically(path, frontend.print_text(frontend.write_back(program)))

    return write
