"""Calls of `shardy_py.jit` while JAX traces, as functions of flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from shardy_py.jax.callable.callbacks import has_side_effects
from shardy_py.jax.callable.contexts import free_mesh, has_x64
from shardy_py.jax.callable.function_call import CallOptions, FunctionCall

if TYPE_CHECKING:
    from shardy_py.jax.calls import CallArguments
    from shardy_py.jax.lowered_call import LoweredCall


def traced_call(function: Callable[..., Any], call: CallArguments, lowered: LoweredCall) -> FunctionCall:
    """Return the function of flat arrays that a call of a function of JAX is.

    Args:
        function: The function.
        call: A call with the same shapes and static arguments.
        lowered: The function for these.
    """
    import jax

    settings, result = lowered.settings, lowered.result
    positional, named = call.shapes(with_shardings=False)
    # The function is kept, and what the call has would be with it: arrays, and values that JAX traces.
    shapes = evolve(call, arguments=positional, keywords=named)
    meshes = [mesh for mesh in result.program.meshes.values() if mesh.axes]
    options = CallOptions(
        mesh=meshes[0] if meshes else None,
        devices=lowered.devices,
        schedule=settings.schedule,
        options=settings.options,
        has_x64=has_x64(),
        compiler_options=settings.compiler_options,
        context=free_mesh(),
    )
    signature = result.signature
    assert signature is not None

    def flat(*arrays: Any) -> Sequence[Any]:
        arguments, keywords = shapes.with_dynamic(arrays)
        return tuple(jax.tree.leaves(function(*arguments, **keywords)))

    flat.__name__ = getattr(function, "__name__", type(function).__name__)
    return FunctionCall(
        function=flat,
        arguments=tuple(shapes.leaves),
        results=tuple(
            jax.ShapeDtypeStruct(item.shape, item.dtype, weak_type=item.weak_type) for item in signature.result_types
        ),
        options=options,
        result=result,
        used=signature.used,
        effects=_effects(lowered),
    )


def _effects(lowered: LoweredCall) -> str:
    program, main = lowered.result.program, lowered.result.main
    if not any(has_side_effects(op) for op in program.walk()):
        return ""
    is_ordered = any("token" in str(value.type) for value in main.function_results)
    return "ordered" if is_ordered else "unordered"
