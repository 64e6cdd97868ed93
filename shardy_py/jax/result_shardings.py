"""Shardings of a result in the trees of a function of JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.jax.arguments import array_values
from shardy_py.jax.compiled_stage import sharding_of_type
from shardy_py.jax.devices import choose_devices, device_count
from shardy_py.jax.named_shardings import memory_kinds, over_abstract_mesh, to_named_sharding, to_partition_spec

if TYPE_CHECKING:
    from shardy_py.api.result import CoreResult
    from shardy_py.jax.signature import JaxSignature


def named_shardings(result: CoreResult, devices: Sequence[Any] | None, *, of_results: bool) -> list[Any]:
    """Return the `jax.sharding.NamedSharding` of each argument or result of a function of JAX that its program has.

    They are None where nothing is sharded or its types are not known, and over an abstract mesh where JAX has too few
    devices.

    Args:
        result: The propagated program.
        devices: The devices; the first ones of ``jax.devices()`` by default.
        of_results: Whether they are those of results.
    """
    import jax

    main, meshes = result.main, result.program.meshes
    every = main.function_results if of_results else entry_arguments(main)
    values = array_values(every)
    if result.signature is None or not any(mesh.axes for mesh in meshes.values()):
        return [None] * len(values)
    kinds = memory_kinds(main, "res_attrs" if of_results else "arg_attrs", len(every))[len(every) - len(values) :]
    count = device_count(meshes.values())
    known = devices or result.signature.devices or jax.devices()
    chosen = choose_devices(count, known, meshes) if len(known) >= count else None
    shardings = []
    for value, kind, type_ in zip(values, kinds, _types(result.signature, of_results=of_results), strict=True):
        sharding = result.program.shardings.get(value.id)
        if chosen is None:
            named = over_abstract_mesh(sharding, meshes, count)
        else:
            named = to_named_sharding(sharding, meshes, chosen, memory_kind=kind)
        shardings.append(sharding_of_type(named, type_))
    return shardings


def divisible_shardings(result: CoreResult, devices: Sequence[Any] | None, *, of_results: bool) -> list[Any]:
    """Return those of `named_shardings` that divide the sizes, as `jax.jit` takes them, and None for the others."""
    assert result.signature is not None
    types = _types(result.signature, of_results=of_results)
    pairs = zip(named_shardings(result, devices, of_results=of_results), types, strict=True)
    return [sharding if _divides(sharding, type_.shape) else None for sharding, type_ in pairs]


def _types(signature: JaxSignature, *, of_results: bool) -> Sequence[Any]:
    """Return the types that the function of JAX has for the arguments or results of its program."""
    return signature.result_types if of_results else [signature.arguments[number] for number in signature.used]


def _divides(sharding: Any, shape: Sequence[int]) -> bool:
    try:
        sharding.shard_shape(tuple(shape))
    except ValueError:
        return False
    return True


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
