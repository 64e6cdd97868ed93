"""Shardings of a result in the trees of a function of JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.jax.arguments import array_values
from shardy_py.jax.named_shardings import to_partition_spec

if TYPE_CHECKING:
    from shardy_py.api.result import CoreResult


def shardings_in_tree(result: CoreResult, mesh: Any, *, of_results: bool) -> Any:
    """Return the shardings of arguments or results in their tree; see `Result.in_specs`."""
    signature = result.signature
    if signature is None:
        message = "the program is not a function of JAX, and has no trees of arguments and results"
        hint = "give what jax.jit(f).lower(...) returns; result.arguments and result.results are the flat shardings"
        raise OptionError(Diagnostic("no-signature", message, hint=hint))
    values = result.main.function_results if of_results else entry_arguments(result.main)
    shardings = [result.program.shardings.get(value.id) for value in array_values(values)]
    specs = [to_partition_spec(sharding, result.program.meshes) for sharding in shardings]
    if mesh is not None:
        from shardy_py.jax.named_shardings import over_mesh

        specs = [over_mesh(spec, mesh) for spec in specs]
    return signature.unflatten_leaves(specs, of_results=of_results)
