"""The primitive of JAX for calls of propagated functions, with all transformations of JAX.

It stands for a function and not for its program: transformations apply to the function, and what comes out of them is
propagated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from shardy_py.api.meshes import as_mesh
from shardy_py.jax.callable.committed import committed_sharding, spec_entry
from shardy_py.jax.callable.function_call import FunctionCall
from shardy_py.jax.callable.primitive import ordered_effect, side_effect
from shardy_py.jax.callable.varying import result_type, varying_alike

_NAME = "shardy_function"


def bind_call(call: FunctionCall, arrays: Sequence[Any]) -> list[Any]:
    """Return the results of a function for arrays, or for values that JAX traces."""
    results: list[Any] = _primitive().bind(*varying_alike(arrays), call=call)
    return results


@cache
def _primitive() -> Any:
    """Return the primitive, which is registered once."""
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    primitive = Primitive(_NAME)
    primitive.multiple_results = True
    primitive.def_impl(lambda *arrays, call: call.run(*arrays))
    primitive.def_effectful_abstract_eval(_result_types)
    mlir.register_lowering(primitive, mlir.lower_fun(lambda *arrays, call: call.run(*arrays), multiple_results=True))
    ad.primitive_jvps[primitive] = _differentiate
    ad.primitive_transposes[primitive] = _transpose
    batching.primitive_batchers[primitive] = _batch
    return primitive


def _result_types(*arguments: Any, call: FunctionCall) -> tuple[list[Any], set[Any]]:
    import jax

    context = jax.sharding.get_abstract_mesh()
    is_explicit = jax.sharding.AxisType.Explicit in context.axis_types
    specs = call.result_specs() if is_explicit else [jax.sharding.PartitionSpec()] * len(call.results)
    types = [result_type(item, spec, arguments) for item, spec in zip(call.results, specs, strict=True)]
    effects = {"": set(), "unordered": {side_effect}, "ordered": {ordered_effect}}[call.effects]
    return types, {make() for make in effects}


def _differentiate(primals: Sequence[Any], tangents: Sequence[Any], *, call: FunctionCall) -> tuple[Any, Any]:
    """Return the results and their tangents."""
    import jax
    from jax.interpreters import ad

    moving = [
        number
        for number, tangent in enumerate(tangents)
        if type(tangent) is not ad.Zero and tangent.dtype != jax.dtypes.float0
    ]
    ahead, behind = call.linearized(moving)
    results = bind_call(ahead, primals)
    count = len(call.results)
    moved = iter(bind_call(behind, (*results[count:], *(tangents[number] for number in moving))))
    result_tangents = [
        next(moved) if jax.numpy.issubdtype(result.dtype, jax.numpy.inexact) else ad.Zero(_tangent_type(result))
        for result in results[:count]
    ]
    return results[:count], result_tangents


def _tangent_type(value: Any) -> Any:
    import jax

    return jax.typeof(value).to_tangent_aval()


def _transpose(cotangents: Sequence[Any], *arguments: Any, call: FunctionCall) -> list[Any]:
    """Return the cotangents of the arguments in which the function is linear."""
    from jax.interpreters import ad

    linear = [number for number, value in enumerate(arguments) if ad.is_undefined_primal(value)]
    known = [value for value in arguments if not ad.is_undefined_primal(value)]
    back = bind_call(call.transposed(linear), (*known, *map(ad.instantiate_zeros, cotangents)))
    argument_cotangents = dict(zip(linear, back, strict=True))
    return [argument_cotangents.get(number) for number in range(len(arguments))]


def _batch(arrays: Sequence[Any], dims: Sequence[Any], *, call: FunctionCall) -> tuple[list[Any], list[int]]:
    """Return the results for a batch, which is their first dimension."""
    size = next(array.shape[dim] for array, dim in zip(arrays, dims, strict=True) if dim is not None)
    axes = tuple(_batch_axes(array, dim, call) for array, dim in zip(arrays, dims, strict=True))
    results = bind_call(call.batched(size, dims, axes), arrays)
    return results, [0] * len(results)


def _batch_axes(array: Any, dim: int | None, call: FunctionCall) -> tuple[str, ...]:
    """Return the axes along which the batch is sharded where JAX does not trace it; none where that is not known."""
    if dim is None:
        return ()
    sharding = committed_sharding(array)
    if sharding is None or as_mesh(sharding.mesh) != call.options.mesh:
        return ()
    return spec_entry(sharding, dim)
