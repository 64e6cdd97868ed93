"""Calls that JAX's own code in C++ dispatches, as it does those of `jax.jit`: there is no public way to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shardy_py.jax.callable.compilation import CompiledBody

Prepare = Callable[..., tuple[Any, Any, bool]]
"""Runs a call that is like none before: its results, the `dispatch_data` of its program, and False."""


def dispatcher(function: Callable[..., Any], prepare: Prepare) -> Callable[..., Any] | None:
    """Return a function that runs the program of a call like one before at once; None where this JAX has none.

    JAX tells calls apart by their trees, types and shardings and by its settings, as for `jax.jit`.

    Args:
        function: The function, which runs itself where JAX is told not to compile.
        prepare: Runs any other call.
    """
    try:
        from jax._src.interpreters.pxla import JitGlobalCppCacheKeys, cc_shard_arg
        from jax._src.tree_util import dispatch_registry
        from jaxlib._jax import pjit
    except ImportError:
        return None
    name = getattr(function, "__name__", type(function).__name__)
    make: Callable[..., Callable[..., Any]] = pjit
    try:
        return make(name, function, prepare, [], [], JitGlobalCppCacheKeys(), dispatch_registry, cc_shard_arg)
    except TypeError:
        # Another JAX may take other arguments.
        return None


def has_deleted(arguments: Any) -> bool:
    """Return whether an array among some arguments is gone, as a donated one: with it JAX's code in C++ may crash.

    Args:
        arguments: A tree of arguments.
    """
    import jax
    from jaxlib._jax import ArrayImpl

    # Neither traced values nor keys, which JAX's code in Python takes.
    arrays = [leaf for leaf in jax.tree.leaves(arguments) if type(leaf) is ArrayImpl]
    return any(map(ArrayImpl.is_deleted, arrays))


def dispatch_data(program: CompiledBody, results: Any) -> Any:
    """Return what JAX needs to run a compiled program again; None if it has to be called each time.

    Args:
        program: The program; it takes all arrays and numbers of the call.
        results: The results of a call, with the types and the tree of the function.
    """
    try:
        return _dispatch_data(program, results)
    except (AttributeError, ImportError, TypeError):
        # Another JAX may have other names inside.
        return None


def _dispatch_data(program: CompiledBody, results: Any) -> Any:
    from jax._src.interpreters import pxla
    from jax._src.tree_util import dispatch_registry
    from jaxlib._jax import ArrayImpl

    arrays, tree = dispatch_registry.flatten(results, None)
    if program.has_packed_elements or any(type(array) is not ArrayImpl for array in arrays):
        return None
    executable = program.compiled._executable
    run = executable.unsafe_call
    if not isinstance(run, pxla.ExecuteReplicated) or program.compiled._params.const_args:
        return None
    if run.ordered_effects or run.has_unordered_effects or run.has_host_callbacks:
        return None
    return pxla.MeshExecutableFastpathData(
        executable.xla_executable,
        tree,
        executable._in_shardings,
        executable._out_shardings,
        [array.aval for array in arrays],
        [array.committed for array in arrays],
        [True] * len(executable._in_shardings),
        executable._dispatch_in_layouts,
        (),
    )
