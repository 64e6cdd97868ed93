"""The primitive of JAX that stands for a local program: it is what each device of a ``shard_map`` runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.jax.callable.body import LocalBody
from shardy_py.jax.callable.callbacks import move_callbacks
from shardy_py.jax.executable import first_line

_NAME = "shardy_local_program"


def call_body(body: LocalBody, arguments: Sequence[Any]) -> list[Any]:
    """Return the results of a local program on one device, in the body of a ``shard_map``."""
    results: list[Any] = _primitive().bind(*arguments, body=body)
    return results


@cache
def _primitive() -> Any:
    """Return the primitive, which is registered once."""
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    primitive = Primitive(_NAME)
    primitive.multiple_results = True
    primitive.def_effectful_abstract_eval(_result_types)
    mlir.register_lowering(primitive, _lower)
    ad.primitive_jvps[primitive] = _refuse_derivatives
    batching.primitive_batchers[primitive] = _refuse_batches
    return primitive


def _result_types(*arguments: Any, body: LocalBody) -> tuple[list[Any], set[Any]]:
    import jax

    types = [jax.core.ShapedArray(item.shape, item.dtype) for item in body.results]
    if body.is_ordered:
        return types, {ordered_effect()}
    return types, {side_effect()} if body.has_side_effects else set()


@cache
def ordered_effect() -> Any:
    """Return the effect of callbacks in order, the one that JAX knows over several devices."""
    from jax._src.callback import _OrderedIOEffect

    return _OrderedIOEffect


@cache
def side_effect() -> Any:
    """Return the effect of programs that call back or print, which JAX must not drop."""
    from jax._src import effects

    class LocalProgramEffect(effects.Effect):
        """Effect of a local program with side effects."""

        def __str__(self) -> str:
            return "LocalProgram"

    effects.lowerable_effects.add_type(LocalProgramEffect)
    effects.control_flow_allowed_effects.add_type(LocalProgramEffect)
    effects.remat_allowed_effects.add_type(LocalProgramEffect)
    effects.custom_derivatives_allowed_effects.add_type(LocalProgramEffect)
    return LocalProgramEffect()


def _parse(bytecode: bytes, context: Any) -> Any:
    from jaxlib.mlir import ir

    try:
        return ir.Module.parse(bytecode, context)
    except ir.MLIRError as error:
        message = f"XLA refuses the module: {first_line(error)}"
        raise UnsupportedError(Diagnostic("refused-by-xla", message)) from error


def _lower(ctx: Any, *arguments: Any, body: LocalBody) -> Any:
    """Call the program as a function of the caller's module, which has it once however often it is called."""
    from jax.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import func

    caller = ctx.module_context
    key = (_NAME, body)
    if key not in caller.cached_primitive_lowerings:
        module = _parse(body.bytecode, caller.module.context)
        if body.host_callbacks:
            move_callbacks(module, len(caller.host_callbacks))
            for function in body.host_callbacks:
                caller.add_host_callback(function)
            caller.add_keepalive(body.keepalive)
        caller.cached_primitive_lowerings[key] = mlir.merge_mlir_modules(
            caller.module, _NAME, module, dst_symtab=caller.symbol_table
        )
    symbol = caller.cached_primitive_lowerings[key]
    types = caller.symbol_table[symbol].type.results
    name = ir.FlatSymbolRefAttr.get(symbol)
    if not body.is_ordered:
        return func.CallOp(types, name, list(arguments)).results
    effect = ordered_effect()
    token = ctx.tokens_in.get(effect)
    results = func.CallOp(types, name, [token, *arguments]).results
    ctx.set_tokens_out(mlir.TokenSet({effect: results[0]}))
    return results[1:]


def _refuse_derivatives(*_: Any, **__: Any) -> Any:
    message = "a propagated program has no derivative: JAX cannot differentiate StableHLO"
    hint = "sdy.jit(function) has derivatives; or propagate jax.value_and_grad(function)"
    raise UnsupportedError(Diagnostic("no-derivative", message, hint=hint))


def _refuse_batches(*_: Any, **__: Any) -> Any:
    message = "a propagated program is for arrays of its own shapes, and cannot be batched"
    hint = "sdy.jit(function) can be batched; or propagate jax.vmap(function)"
    raise UnsupportedError(Diagnostic("no-batching", message, hint=hint))
