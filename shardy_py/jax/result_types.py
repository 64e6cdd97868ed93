"""Types of results that modules do not say: keys of random numbers, and weak types."""

from __future__ import annotations

from typing import Any


def as_type(array: Any, type_: Any) -> Any:
    """Return an array of a propagated program as the function of JAX returns it.

    Args:
        array: The array, or a value that JAX traces. It is new: nothing else refers to it.
        type_: The type of the result of the function, with ``dtype`` and, unless it is strong, ``weak_type``.

    Returns:
        The numbers of keys of `jax.random` as keys, and an array of a weak type as one; any other array as it is.
    """
    import jax

    if jax.dtypes.issubdtype(type_.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(array, impl=jax.random.key_impl(jax.numpy.empty((), type_.dtype)))
    if getattr(type_, "weak_type", False) and not isinstance(array, jax.core.Tracer):
        array.aval = array.aval.update(weak_type=True)
    return array


def is_in_module(type_: Any) -> bool:
    """Return whether a module says the type of a result, so that `as_type` changes nothing."""
    import jax

    return not jax.dtypes.issubdtype(type_.dtype, jax.dtypes.prng_key) and not getattr(type_, "weak_type", False)
