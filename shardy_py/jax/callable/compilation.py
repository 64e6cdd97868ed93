"""Local programs compiled by JAX, for calls with arrays."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.jax.callable.body import LocalBody
from shardy_py.jax.callable.boundary import Boundary, has_view
from shardy_py.jax.callable.placement import PortPlacement
from shardy_py.jax.callable.primitive import call_body
from shardy_py.jax.donations import UNUSABLE
from shardy_py.jax.executable import PATIENCE, first_line
from shardy_py.values import frozen

_PACKED = frozenset(("int2", "uint2", "int4", "uint4", "float4_e2m1fn"))


@frozen(eq=False)
class CompiledBody:
    """A local program with its boundary, compiled by JAX.

    Args:
        jitted: The function of `jax.jit`.
        compiled: What is compiled of it.
        has_packed_elements: Whether arrays have elements of less than a byte: JAX's ``Compiled`` does not take those
            that were put on a device.
        in_shardings: The shardings of the global arguments.
        out_shardings: Those of the results.
    """

    jitted: Any
    compiled: Any
    has_packed_elements: bool
    in_shardings: tuple[Any, ...] = ()
    out_shardings: tuple[Any, ...] = ()

    def __call__(self, *arrays: Any) -> list[Any]:
        """Return the results."""
        results: list[Any] = self.jitted(*arrays) if self.has_packed_elements else self.compiled(*arrays)
        return results

    @property
    def executable(self) -> Any:
        """XLA's loaded executable."""
        return self.compiled.runtime_executable()


def compile_on(
    boundary: Boundary,
    body: LocalBody,
    *,
    in_shardings: Sequence[Any],
    out_shardings: Sequence[Any],
    donated: Collection[int],
    compiler_options: Mapping[str, Any],
) -> CompiledBody:
    """Return a local program compiled by JAX.

    Args:
        boundary: The boundary of the program.
        body: What each device runs.
        in_shardings: The shardings of the global arguments.
        out_shardings: Those of the results.
        donated: The numbers of the arguments whose memory the results may take.
        compiler_options: Options of XLA.

    Raises:
        UnsupportedError: XLA refuses the program.
    """
    import jax

    def shardy_program(*arrays: Any) -> list[Any]:
        pairs = zip(arrays, in_shardings, strict=True)
        return boundary.call(lambda shards: call_body(body, shards), [_in_device_memory(*pair) for pair in pairs])

    jitted = jax.jit(
        shardy_program,
        in_shardings=tuple(in_shardings),
        out_shardings=list(out_shardings),
        donate_argnums=tuple(sorted(donated)),
        keep_unused=True,
        compiler_options=dict(compiler_options) or None,
    )
    placements = boundary.placement.arguments
    types = [item.port.type.dtype for item in (*placements, *boundary.placement.results)]
    is_packed = any(dtype.name in _PACKED for dtype in types)
    with jax.enable_x64(True), warnings.catch_warnings():
        # The user is warned where the function is propagated; see `warn_of_unusable_donations`.
        warnings.filterwarnings("ignore", message=UNUSABLE)
        count = boundary.mesh.size
        shapes = [jax.ShapeDtypeStruct(_shape(item, count), item.port.type.dtype) for item in placements]
        try:
            return CompiledBody(jitted, _compile(jitted.lower(*shapes)), is_packed)
        except jax.errors.JaxRuntimeError as error:
            message = f"XLA refuses the module: {first_line(error)}"
            raise UnsupportedError(Diagnostic("refused-by-xla", message)) from error


def refuse_traced_options(compiler_options: Mapping[str, Any]) -> None:
    """Check that a call that JAX traces as part of another program has no options of XLA, as `jax.jit` does.

    Raises:
        UnsupportedError: it has.
    """
    if compiler_options:
        message = "compiler_options are for a program of its own, and JAX traces this call as part of another one"
        hint = "give them to the jax.jit or sdy.jit that is called outside of all others"
        raise UnsupportedError(Diagnostic("traced-options", message, hint=hint))


def _shape(placement: PortPlacement, count: int) -> tuple[int, ...]:
    """Return the shape of an argument, or of the view of it."""
    port = placement.port
    return (count, *port.shard_shape) if has_view(placement) else port.type.shape


def _compile(lowered: Any) -> Any:
    """Return what is compiled, without the options of host devices where XLA does not know them."""
    import jax

    if jax.default_backend() != "cpu":
        return lowered.compile()
    try:
        return lowered.compile(compiler_options=dict(PATIENCE))
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        return lowered.compile()


def _in_device_memory(array: Any, sharding: Any) -> Any:
    """Return an array in the memory of the device, where programs compute."""
    import jax

    device = next(iter(sharding.device_set))
    default = device.default_memory().kind
    if sharding.memory_kind in (None, default):
        return array
    return jax.device_put(array, sharding.with_memory_kind(default))
