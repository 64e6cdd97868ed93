"""The one table in which the core names its leaves: their commands, methods of results, frontends, functions.

A leaf is a room that the core works without, such as `kernels`. Every entry is a text, ``module:attribute``, and the
module is imported when something asks for the entry, so that a run loads nothing that it does not use. To add a leaf,
add its entries here; no other file of the core names it, which import-linter checks.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardy_py.cost.result_methods import CostMethods
    from shardy_py.explain.result_methods import ExplainMethods
    from shardy_py.jax.result_methods import JaxMethods
    from shardy_py.torch.result_methods import TorchMethods

    class ResultMethods(CostMethods, ExplainMethods, JaxMethods, TorchMethods):
        """The methods of `Result` that leaves have, for type checkers; at runtime `RESULT_METHODS` has them."""


COMMANDS = {
    "advise": "shardy_py.cost.commands.advise:advise",
    "check": "shardy_py.testing.commands.check:check",
    "compare": "shardy_py.cost.commands.compare:compare",
    "compare-jit": "shardy_py.jax.commands.compare_jit:compare_jit",
    "compare-reference": "shardy_py.oracle.commands.compare_reference:compare_reference",
    "cost": "shardy_py.cost.commands.cost:cost",
    "diff": "shardy_py.explain.commands.diff:diff",
    "emit": "shardy_py.kernels.commands.emit:emit",
    "emit-opt": "shardy_py.kernels.commands.emit_opt:emit_opt",
    "explain": "shardy_py.explain.commands.explain:explain",
    "explore": "shardy_py.explain.commands.explore:explore",
    "layout": "shardy_py.layout.commands.layout:layout",
    "local": "shardy_py.jax.commands.local:local",
    "machines": "shardy_py.cost.commands.machines:machines",
    "mpmd": "shardy_py.mpmd.commands.mpmd:mpmd",
    "plan": "shardy_py.plans.commands.plan:plan",
    "run": "shardy_py.jax.commands.run:run",
    "search": "shardy_py.cost.commands.search:search",
    "study": "shardy_py.cost.commands.study:study",
}
"""Commands of ``shardy`` beside those in the files of `shardy_py.cli.commands`."""

RESULT_METHODS = {
    "shardy_py.cost.result_methods:CostMethods": "advise cost cost_expressions memory",
    "shardy_py.explain.result_methods:ExplainMethods": (
        "_repr_html_ explain explain_op explainer explore not_settled picture"
    ),
    "shardy_py.jax.result_methods:JaxMethods": "compare_jit for_gspmd for_xla in_specs jaxlib local out_specs to_jax",
    "shardy_py.torch.result_methods:TorchMethods": (
        "distribute parallelize_plan placements redistributions to_torch torch_forms"
    ),
}
"""Classes whose methods and properties are those of `Result`, with their names."""

FRONTENDS = {
    "hlo": "shardy_py.jax.hlo:HLO",
    "jax": "shardy_py.jax.stages:JAX",
    "jit": "shardy_py.jax.like_jit.modules:JIT",
    "onnx": "shardy_py.onnx:ONNX",
    "torch": "shardy_py.torch.frontend:TORCH",
}
"""Frontends for other programs than op graphs, MLIR and xDSL."""

PASS_ROOMS = ("shardy_py.local", "shardy_py.mpmd")
"""Leaves whose files have passes, for the text of pipelines."""

FUNCTIONS = {
    "advise_inputs": "shardy_py.plans.advise_inputs:advise_inputs",
    "best_inputs": "shardy_py.plans.advise_inputs:best_inputs",
    "context_mesh": "shardy_py.jax.signature:context_mesh",
    "import_gspmd": "shardy_py.jax.gspmd.importer:import_gspmd",
    "import_round_trip": "shardy_py.jax.gspmd.importer:import_round_trip",
    "is_jax_program": "shardy_py.jax.like_jit:is_jax_program",
    "is_stage": "shardy_py.jax.modules:is_stage",
    "is_written_by_jax": "shardy_py.jax.like_jit:is_written_by_jax",
    "local_torch": "shardy_py.torch.result_forms:local_torch",
    "lower_function": "shardy_py.jax.modules:lower_function",
    "memory_data": "shardy_py.cost.report.memory:memory_data",
    "module_of_serialized": "shardy_py.jax.modules:module_of_serialized",
    "module_of_stage": "shardy_py.jax.modules:module_of_stage",
    "plan": "shardy_py.plans.planning:plan",
    "print_memory": "shardy_py.cost.report.memory:print_memory",
    "read_like_jit": "shardy_py.jax.like_jit:read_like_jit",
    "recording": "shardy_py.trace.recording:Recording",
    "report_memory": "shardy_py.cost.memory:report_memory",
    "run_functions": "shardy_py.testing.sharded.functions_run:run_functions",
    "run_torch": "shardy_py.torch.running:run_torch",
    "session": "shardy_py.cost.session:Session",
    "signature_of_stage": "shardy_py.jax.signature:signature_of_stage",
}
"""What the core, or a leaf below another, calls by a name of its own."""


@cache
def load(entry: str) -> Any:
    """Return what an entry of the tables names, ``module:attribute``; its module is imported now."""
    module, _, attribute = entry.partition(":")
    return getattr(import_module(module), attribute)


def function(name: str) -> Any:
    """Return a function or class of `FUNCTIONS`."""
    return load(FUNCTIONS[name])


@cache
def result_method_homes() -> dict[str, str]:
    """Return the entry of the class that has a method of `Result`, by the method's name."""
    return {name: entry for entry, names in RESULT_METHODS.items() for name in names.split()}
