"""Names for parts of functions of JAX: computations, tensors and microbatches.

Each is a call of a function whose name says what it is, so that it is traced, differentiated, batched and lowered as
`jax.jit` is, and means nothing to a program that runs on one mesh. `shardy_py.mpmd.passes.named.calls_to_named_ops`
reads the names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from shardy_py.errors import Diagnostic, OptionError, require_library
from shardy_py.mpmd.dialect.name_marks import broadcast_mark, call_mark, computation_mark, reduce_mark, tensor_mark
from shardy_py.support.arguments import as_integer, shown


def named_computation(function: Callable[..., Any] | None = None, *, name: str) -> Any:
    """Return a function as a named computation, which an assignment puts on a mesh.

    What JAX makes of it by differentiation keeps the name, with a transpose count of one: it is the backward part, and
    runs on the same mesh. The forward part hands over what the backward part needs.

    Args:
        function: A function of arrays, or trees of them; without one, `named_computation` returns a decorator.
        name: The name.

    Raises:
        OptionError: the name is not a name.
    """
    _check_name(name)
    if function is None:
        return lambda inner: named_computation(inner, name=name)
    return wraps(function)(_NamedComputation(function, name))


class _NamedComputation:
    """A callable with derivatives that are named, too."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import jax

        leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        # Arrays can be differentiated; other leaves, such as flags, are part of the function.
        is_array = [hasattr(leaf, "dtype") or isinstance(leaf, (bool, int, float, complex)) for leaf in leaves]
        fixed = [None if flag else leaf for leaf, flag in zip(leaves, is_array, strict=True)]

        def flat(*arrays: Any) -> Any:
            rest = iter(arrays)
            every = [next(rest) if flag else leaf for leaf, flag in zip(fixed, is_array, strict=True)]
            positional, named = jax.tree_util.tree_unflatten(tree, every)
            return self._function(*positional, **named)

        arrays = [jax.numpy.asarray(leaf) for leaf, flag in zip(leaves, is_array, strict=True) if flag]
        closed, constants = jax.closure_convert(flat, *arrays)
        return _with_named_derivative(closed, self._name)(*arrays, *constants)


def _with_named_derivative(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function whose forward and backward parts are calls of functions with marked names."""
    import jax

    forward_only = jax.jit(_marked(function, computation_mark(name, 0)))
    trees: list[Any] = []

    def forward(*arrays: Any) -> Any:
        results, vjp = jax.vjp(function, *arrays)
        residuals, tree = jax.tree_util.tree_flatten(vjp)
        trees.append(tree)
        return results, residuals

    def backward(residuals: Any, cotangents: Any) -> Any:
        return jax.tree_util.tree_unflatten(trees[-1], residuals)(cotangents)

    named = jax.custom_vjp(lambda *arrays: forward_only(*arrays))
    named_forward = jax.jit(_marked(forward, computation_mark(name, 0)))
    named_backward = jax.jit(_marked(_with_float_cotangents(backward), computation_mark(name, 1)))

    def run_backward(residuals: Any, cotangents: Any) -> Any:
        arrays, types = residuals
        gradients = iter(named_backward(arrays, cotangents))
        return tuple(next(gradients) if is_float else None for is_float in types.flags)

    def run_forward(*arrays: Any) -> Any:
        results, residuals = named_forward(*arrays)
        flags = tuple(bool(jax.numpy.issubdtype(array.dtype, jax.numpy.inexact)) for array in arrays)
        return results, (residuals, _Flags.of(flags))

    named.defvjp(run_forward, run_backward)
    return named


class _Flags:
    """A node of trees without leaves: for each argument whether it is of floating point."""

    _is_registered = False

    def __init__(self, flags: tuple[bool, ...]) -> None:
        self.flags = flags

    @classmethod
    def of(cls, flags: tuple[bool, ...]) -> _Flags:
        """Return flags that JAX takes as a tree."""
        import jax

        if not _Flags._is_registered:
            jax.tree_util.register_pytree_node(_Flags, lambda item: ((), item.flags), lambda flags, _: _Flags(flags))
            _Flags._is_registered = True
        return cls(flags)


def _with_float_cotangents(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Return the backward part without the gradients of arguments that have none."""

    def floats(residuals: Any, cotangents: Any) -> Any:
        import jax

        gradients = backward(residuals, cotangents)
        return tuple(item for item in gradients if item.dtype != jax.dtypes.float0)

    return floats


def named_tensor(value: Any, name: str) -> Any:
    """Return an array, or a tree of them, under a name that an assignment puts on a mesh or into a memory.

    Args:
        value: The array.
        name: The name.

    Raises:
        OptionError: the name is not a name.
    """
    _check_name(name)
    import jax

    return jax.jit(_marked(lambda x: jax.lax.optimization_barrier(x), tensor_mark(name)))(value)


def broadcast(value: Any) -> Any:
    """Return an array, or a tree of them, that goes from its mesh to all meshes that use it.

    Its transpose is `reduce`: gradients of all meshes are added up.

    Args:
        value: The array.
    """
    return _exchange(broadcast_mark(), reduce_mark())(value)


def reduce(value: Any) -> Any:
    """Return an array, or a tree of them, that is a sum of values of several meshes, added up mesh by mesh first.

    Its transpose is `broadcast`.

    Args:
        value: The array: what a sum, maximum or minimum of values of several meshes returns.
    """
    return _exchange(reduce_mark(), broadcast_mark())(value)


def _exchange(mark: str, transposed_mark: str) -> Callable[[Any], Any]:
    """Return the identity under a mark, whose transpose is the identity under another one."""
    require_library("jax", purpose="values of several meshes need", extra="jax")
    import jax

    def identity(value: Any) -> Any:
        return jax.lax.optimization_barrier(value)

    forward, backward = (jax.jit(_marked(identity, name)) for name in (mark, transposed_mark))
    exchange = jax.custom_vjp(lambda value: forward(value))
    exchange.defvjp(lambda value: (forward(value), None), lambda _, cotangent: (backward(cotangent),))
    return exchange


def fori_loop(iterations: int, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """Return what a loop carries after its last iteration; each iteration is a microbatch.

    Args:
        iterations: The number of iterations.
        body: Takes the number of an iteration and what the loop carries, and returns what it carries on.
        init: What the first iteration gets.

    Raises:
        OptionError: the number of iterations is not a number from 1 on.
    """
    count = as_integer(iterations)
    if count is None or count < 1:
        message = f"iterations is {shown(iterations)}, not a number from 1 on"
        raise OptionError(Diagnostic("invalid-iterations", message, hint="give the number of microbatches"))
    carried = init
    for number in range(count):
        carried = call(body, call_counter=number)(number, carried)
    return carried


def call(function: Callable[..., Any], *, call_counter: int) -> Callable[..., Any]:
    """Return a function whose named computations are those of one microbatch.

    Args:
        function: The function, mostly the loss and its gradients.
        call_counter: The number of the microbatch.

    Raises:
        OptionError: the counter is not a number from 0 on.
    """
    number = as_integer(call_counter)
    if number is None or number < 0:
        message = f"call_counter is {shown(call_counter)}, not a number from 0 on"
        raise OptionError(Diagnostic("invalid-counter", message, hint="number the microbatches: 0, 1, 2"))
    require_library("jax", purpose="microbatches of a function need", extra="jax")
    import jax

    return wraps(function)(jax.jit(_marked(function, call_mark(number))))


def _marked(function: Callable[..., Any], mark: str) -> Callable[..., Any]:
    """Return a function that lowers to a function with a name."""

    def marked(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    marked.__name__ = marked.__qualname__ = mark
    return marked


def _check_name(name: object) -> None:
    require_library("jax", purpose="names in a function need", extra="jax")
    if not isinstance(name, str) or not name or name == "main":
        message = f"{shown(name)} is not a valid name of a computation or tensor"
        raise OptionError(Diagnostic("invalid-name", message, hint='give a text other than "main"'))
