"""Former names of modules, which import what they are called now, with a warning.

Version 0.1 had other rooms. The names of then work until version 0.3.
"""

from __future__ import annotations

from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from warnings import warn

_PACKAGE = "shardy_py."
MOVED = {
    "amounts": "support.texts",
    "analysis": "cost",
    "analysis.advice": "cost.advice",
    "analysis.cost": "cost.estimates",
    "analysis.diff": "explain.diff",
    "analysis.explain_reshard": "explain.reshards.explain_reshard",
    "analysis.machine": "cost.machines",
    "analysis.proposals": "explain.reshards.proposals",
    "analysis.sweep": "cost.sweeps",
    "analysis.sweep.program_source": "api.program_source",
    "api.explaining": "explain.explaining",
    "api.gspmd": "jax.gspmd.result",
    "api.local_form": "jax.local.form",
    "api.local_running": "jax.local.running",
    "api.memory": "cost.memory",
    "api.run_report": "jax.run_report",
    "api.running": "jax.running",
    "api.running_inputs": "jax.running_inputs",
    "api.torch_forms": "torch.result_forms",
    "api.torch_running": "torch.running",
    "api.xla_ops": "jax.xla_ops",
    "arguments": "support.arguments",
    "cli.advise": "cost.commands.run_advise",
    "cli.against_xla": "cost.commands.against_xla",
    "cli.commands.advise": "cost.commands.advise",
    "cli.commands.compare": "cost.commands.compare",
    "cli.commands.compare_reference": "oracle.commands.compare_reference",
    "cli.commands.cost": "cost.commands.cost",
    "cli.commands.diff": "explain.commands.diff",
    "cli.commands.emit": "kernels.commands.emit",
    "cli.commands.explain": "explain.commands.explain",
    "cli.commands.explore": "explain.commands.explore",
    "cli.commands.layout": "layout.commands.layout",
    "cli.commands.local": "jax.commands.local",
    "cli.commands.machines": "cost.commands.machines",
    "cli.commands.run": "jax.commands.run",
    "cli.commands.search": "cost.commands.search",
    "cli.compare": "cost.commands.run_compare",
    "cli.compare_reference": "oracle.commands.run_compare_reference",
    "cli.cost": "cost.commands.run_cost",
    "cli.diff": "explain.commands.run_diff",
    "cli.emit": "kernels.commands.run_emit",
    "cli.explain": "explain.commands.run_explain",
    "cli.explore": "explain.commands.run_explore",
    "cli.layout": "layout.commands.run_layout",
    "cli.local": "jax.commands.run_local",
    "cli.machines": "cost.commands.run_machines",
    "cli.run": "jax.commands.run_run",
    "cli.run_report": "jax.commands.run_report",
    "cli.run_worker": "jax.commands.run_worker",
    "cli.search": "cost.commands.run_search",
    "cli.sweep": "cost.commands.sweep_progress",
    "element_types": "support.element_types",
    "emitters": "kernels",
    "explain.answer.places": "trace.places",
    "explain.record": "trace",
    "explore": "explain.explore",
    "files": "support.files",
    "frontends.gspmd": "jax.gspmd.importer",
    "frontends.hlo": "jax.hlo",
    "frontends.jax_modules": "jax.modules",
    "frontends.jax_stages": "jax.stages",
    "frontends.torch": "torch.frontend",
    "homes": "support.homes",
    "identity": "support.identity",
    "indexing.op_indexing": "indexing.indexing_map",
    "indexing.op_maps.moving": "indexing.op_maps.data_movement",
    "indexing.op_maps.places": "indexing.op_maps.element_order",
    "indexing.op_maps.reading": "indexing.op_maps.data_movement",
    "indexing.op_maps.reducing": "indexing.op_maps.reduction",
    "indexing.op_maps.reshape": "indexing.op_maps.element_order",
    "indexing.reach": "indexing.ranges",
    "indexing.simplification": "indexing.composition",
    "integers": "support.arguments",
    "ir.attributes": "ir.graph.attributes",
    "ir.builder": "ir.graph.builder",
    "ir.builder_checks": "ir.graph.builder_checks",
    "ir.call_copy_limit": "transforms.prepare.call_copy_limit",
    "ir.callgraph": "ir.graph.graphs",
    "ir.check_data_flow": "plugins.check_data_flow",
    "ir.check_single_block": "ir.graph.verify",
    "ir.collective_combiner": "ir.graph.enum_attributes",
    "ir.constant_copies": "transforms.constant_copies",
    "ir.costs": "ir.interfaces.costs",
    "ir.data_flow": "ir.graph.data_flow",
    "ir.dead_ops": "ir.graph.dead_ops",
    "ir.debug_info": "transforms.debug_info",
    "ir.directions": "ir.graph.enum_attributes",
    "ir.emission": "ir.interfaces.emission",
    "ir.error_texts": "guards.error_texts",
    "ir.foreign_types": "ir.graph.foreign_types",
    "ir.frontend": "ir.interfaces.frontend",
    "ir.gc_pause": "support.gc_pause",
    "ir.guard": "guards.guard",
    "ir.kernels": "ir.interfaces.emission",
    "ir.local": "ir.interfaces.local",
    "ir.local_collective": "ir.interfaces.local_ops",
    "ir.local_windows": "ir.interfaces.local_windows",
    "ir.move_region": "ir.graph.rewriting",
    "ir.nesting": "ir.graph.verify",
    "ir.networkx": "ir.graph.graphs",
    "ir.op_clones": "ir.graph.rewriting",
    "ir.op_index": "ir.graph.walk",
    "ir.op_names": "ir.graph.op_names",
    "ir.op_values": "ir.graph.walk",
    "ir.ops_by_name": "ir.graph.op_names",
    "ir.parked_ops": "ir.graph.rewriting",
    "ir.passes": "ir.interfaces.passes",
    "ir.plugin_places": "guards.error_texts",
    "ir.printing": "ir.graph.printing",
    "ir.program_copy": "ir.graph.program_copy",
    "ir.rule_attributes": "ir.graph.rule_attributes",
    "ir.sharding_walker": "transforms.sharding_walker",
    "ir.shardings": "ir.graph.shardings",
    "ir.shardy_attributes": "ir.graph.verify_shardings",
    "ir.symbol_references": "ir.graph.attributes",
    "ir.symbols": "ir.graph.symbols",
    "ir.types": "ir.graph.types",
    "ir.use_order": "ir.graph.walk",
    "ir.verify": "ir.graph.verify",
    "ir.verify_shardings": "ir.graph.verify_shardings",
    "kernels.dialect.arith_more": "kernels.dialect.arith_and_llvm",
    "kernels.dialect.attributes": "kernels.dialect.types",
    "kernels.dialect.float_bits": "kernels.dialect.constants",
    "kernels.dialect.llvm_more": "kernels.dialect.arith_and_llvm",
    "kernels.dialect.syntax": "kernels.dialect.types",
    "kernels.dialect.vectors": "kernels.dialect.constants",
    "kernels.draw.svg": "kernels.draw.pictures",
    "kernels.draw.text": "kernels.draw.pictures",
    "kernels.draw.trace": "kernels.draw.accesses",
    "kernels.draw.warps": "kernels.draw.accesses",
    "kernels.elemental.expansions": "kernels.elemental.scalars",
    "kernels.elemental.small_floats": "kernels.elemental.scalars",
    "kernels.entry.concatenate": "kernels.entry.entries",
    "kernels.entry.in_place": "kernels.entry.entries",
    "kernels.entry.loop": "kernels.entry.entries",
    "kernels.entry.packed_transpose": "kernels.entry.transpose",
    "kernels.entry.thread_loops": "kernels.entry.scopes",
    "kernels.entry.tiled_transpose": "kernels.entry.transpose",
    "kernels.fusion.aliases": "kernels.fusion.choose",
    "kernels.fusion.concatenates": "kernels.fusion.bodies",
    "kernels.fusion.heroes": "kernels.fusion.choose",
    "kernels.fusion.scatters": "kernels.fusion.in_place",
    "kernels.fusion.value_numbers": "kernels.fusion.element_reads",
    "kernels.launch.in_place": "kernels.launch.launches",
    "kernels.launch.joined": "kernels.launch.launches",
    "kernels.launch.maps": "kernels.launch.launches",
    "kernels.launch.tiled": "kernels.launch.transposes",
    "kernels.lower.atomics": "kernels.lower.memory",
    "kernels.lower.bfloat": "kernels.lower.floats",
    "kernels.lower.exponential": "kernels.lower.series",
    "kernels.lower.libdevice": "kernels.requirements",
    "kernels.lower.logarithm": "kernels.lower.series",
    "kernels.lower.ptx": "kernels.lower.machine",
    "kernels.lower.strips": "kernels.lower.host_loops",
    "kernels.lower.target": "kernels.lower.literals",
    "kernels.lower.threads": "kernels.lower.control",
    "kernels.lower.wrapping": "kernels.lower.host_loops",
    "kernels.passes.convert_float": "kernels.passes.float_conversions",
    "kernels.passes.convert_index_type": "kernels.passes.integer_types",
    "kernels.passes.cse": "kernels.passes.redundancy",
    "kernels.passes.erase_dead_functions": "kernels.passes.inline",
    "kernels.passes.expand_float": "kernels.passes.float_conversions",
    "kernels.passes.index_arithmetic": "kernels.passes.simplify_affine",
    "kernels.passes.licm": "kernels.passes.redundancy",
    "kernels.passes.loops_to_scf": "kernels.passes.lower_to_scf",
    "kernels.passes.lower_shared": "kernels.passes.shared_memory",
    "kernels.passes.merge_pointers": "kernels.passes.buffer_facts",
    "kernels.passes.peel_loops": "kernels.passes.loops",
    "kernels.passes.plugin_passes": "kernels.passes.pipeline",
    "kernels.passes.pointers": "kernels.passes.packed_elements",
    "kernels.passes.propagate_slice_indices": "kernels.passes.buffer_facts",
    "kernels.passes.pure_calls": "kernels.passes.inline",
    "kernels.passes.signless": "kernels.passes.integer_types",
    "kernels.passes.simplify_arith": "kernels.passes.index_ranges",
    "kernels.passes.small_floats": "kernels.passes.float_conversions",
    "kernels.passes.uniform_barriers": "kernels.passes.shared_memory",
    "kernels.passes.unroll_loops": "kernels.passes.loops",
    "kernels.passes.unswitch_loops": "kernels.passes.loops",
    "kernels.passes.vectorize_atomics": "kernels.passes.vectorize",
    "kernels.passes.vectorize_loads_stores": "kernels.passes.vectorize",
    "kernels.passes.verify": "kernels.passes.pipeline",
    "kernels.run.branches": "kernels.run.control",
    "kernels.run.functions": "kernels.run.floats",
    "kernels.run.handlers": "kernels.run.kernel",
    "kernels.run.packed": "kernels.run.values",
    "kernels.run.pointer_atomics": "kernels.run.pointers",
    "plugins.bodies.calls": "plugins.bodies.functions",
    "plugins.bodies.casts": "plugins.bodies.functions",
    "plugins.bodies.dry": "plugins.bodies.terms",
    "plugins.bodies.elementwise": "plugins.bodies.map_texts",
    "plugins.bodies.places": "plugins.bodies.replicated_dims",
    "plugins.bodies.shares": "plugins.bodies.shards",
    "plugins.clashes": "plugins.plugin_info",
    "plugins.foreign_types": "plugins.type_definition",
    "plugins.guarded_emitter": "plugins.guarded_frontend",
    "plugins.imported_modules": "plugins.plugin_dependencies",
    "plugins.op_reductions": "plugins.op_facts",
    "plugins.read_files": "plugins.plugin_dependencies",
    "plugins.region_costs": "plugins.region_ops",
    "plugins.region_data_flows": "plugins.region_ops",
    "plugins.rule_memory": "plugins.rule_view",
    "plugins.rule_notices": "plugins.rule_checks",
    "plugins.type_shapes": "plugins.type_definition",
    "propagation.id_map": "propagation.slots",
    "propagation.outcome_memory": "propagation.step_outcomes",
    "propagation.sharding_groups": "propagation.initial_shardings",
    "propagation.type_check": "propagation.slots",
    "report.advice": "cost.report.advice",
    "report.against_xla": "cost.report.against_xla",
    "report.comparison": "cost.report.comparison",
    "report.cost": "cost.report.cost",
    "report.diff": "explain.report.diff",
    "report.explain": "explain.report.explain",
    "report.kernels": "kernels.report",
    "report.layout": "layout.report",
    "report.local": "jax.report.local",
    "report.machines": "cost.report.machines",
    "report.memory": "cost.report.memory",
    "report.plots": "cost.report.plots",
    "report.running": "jax.report.running",
    "rules": "sharding.rules",
    "schedule.default": "schedule.builtin",
    "schedule.given": "schedule.from_options",
    "schedule.op_priorities": "schedule.from_options",
    "sharding.collectives": "sharding.op_attributes",
    "sharding.derivation.dim_index": "sharding.derivation.loops",
    "sharding.derivation.domains": "sharding.derivation.factors",
    "sharding.derivation.iterators": "sharding.derivation",
    "sharding.derivation.op_indexing": "sharding.derivation.from_maps",
    "sharding.einsum.problems": "sharding.einsum.notation",
    "sharding.field_types": "sharding.verify",
    "sharding.hlo.digits": "sharding.hlo.tiles",
    "sharding.hlo.meshes": "sharding.hlo.convert",
    "sharding.hlo.parse": "sharding.hlo.sharding",
    "sharding.propagation_edges": "sharding.op_attributes",
    "sharding.reduction_ops": "sharding.combiner",
    "sharding.reductions": "sharding.rule",
    "sharding.sdy_attribute": "sharding.axes",
    "signatures": "support.arguments",
    "targets.gspmd": "jax.gspmd.exporter",
    "targets.jax": "jax",
    "targets.local": "jax.local",
    "targets.reshard_ops": "transforms.reshard_ops",
    "targets.sort_dimensions": "transforms.sort_dimensions",
    "targets.torch": "torch.parallel",
    "texts": "support.texts",
    "transforms.local": "local",
    "transforms.local.options": "api.local_options",
    "targets": "",
}
"""Former to present names of modules and packages, without the name of the package; "" for an empty one."""


def present_name(name: str) -> str | None:
    """Return the present name of a module by its former one, "" for a package that only held others; None for others.

    >>> present_name("shardy_py.emitters.run"), present_name("shardy_py.ir.types"), present_name("shardy_py.api")
    ('shardy_py.kernels.run', 'shardy_py.ir.graph.types', None)
    """
    if not name.startswith(_PACKAGE):
        return None
    prefix, rest = name.removeprefix(_PACKAGE), ""
    while prefix:
        if prefix in MOVED:
            return f"{_PACKAGE}{MOVED[prefix]}{rest}" if MOVED[prefix] else ("" if not rest else None)
        prefix, _, last = prefix.rpartition(".")
        rest = f".{last}{rest}"
    return None


def find_moved(name: str) -> ModuleSpec | None:
    """Return how to import a module by a former name; None for any other name."""
    present = present_name(name)
    return None if present is None else ModuleSpec(name, _MovedModule(present), is_package=not present)


class _MovedModule(Loader):
    """The loader of a module that has another name now."""

    def __init__(self, present: str) -> None:
        self.present = present
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module under its present name; for a package one that has its names, for its modules move, too."""
        if not self.present:
            return None
        warn(f"{spec.name} is {self.present} now", DeprecationWarning, stacklevel=2)
        module = import_module(self.present)
        if not hasattr(module, "__path__"):
            self.spec = module.__spec__
            return module
        package = ModuleType(spec.name, module.__doc__)
        # Nothing is found in the folder of the package under its former name: there is one module of each file.
        package.__path__ = []
        package.__getattr__ = lambda name: getattr(module, name)  # type: ignore[method-assign]
        return package

    def exec_module(self, module: ModuleType) -> None:
        """Leave a module as it is under its present name."""
        if self.spec is not None:
            module.__spec__ = self.spec
