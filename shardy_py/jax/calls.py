"""Calls of functions of JAX: what tells one call from another, and their values while JAX traces."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any
from warnings import catch_warnings, filterwarnings

from shardy_py.api.specs import memory_of_spec
from shardy_py.errors import Diagnostic, OptionError, require_library
from shardy_py.ir.graph.program import Op, Program
from shardy_py.jax.arguments import array_values
from shardy_py.jax.callable.committed import committed_sharding
from shardy_py.jax.callable.contexts import trace_context
from shardy_py.jax.devices import choose_devices, device_count
from shardy_py.jax.donations import UNUSABLE
from shardy_py.jax.modules import lower_traced
from shardy_py.jax.named_shardings import to_named_sharding
from shardy_py.jax.sharding_trees import is_leaf
from shardy_py.jax.signature import JaxSignature
from shardy_py.support.identity import identity
from shardy_py.values import frozen


@frozen(eq=False, slots=False)
class CallArguments:
    """The arguments of a call.

    Args:
        arguments: The positional arguments.
        keywords: Those by keyword.
        static_numbers: The numbers of positional arguments that are values of Python to the function.
        static_names: The names of arguments by keyword that are.
    """

    arguments: Sequence[Any]
    keywords: Mapping[str, Any]
    static_numbers: tuple[int, ...] = ()
    static_names: tuple[str, ...] = ()

    @cached_property
    def dynamic(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that are arrays, or trees of them."""
        return self.select_dynamic(self.arguments, self.keywords)

    def select_dynamic(
        self, arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return those of some arguments that stand where arrays, or trees of them, do."""
        if not self.static_numbers and not self.static_names:
            return tuple(arguments), dict(keywords)
        numbers = self._numbers
        positional = tuple(item for number, item in enumerate(arguments) if number not in numbers)
        return positional, {name: item for name, item in keywords.items() if name not in self.static_names}

    def with_dynamic(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of the call with other arrays, and the same static ones."""
        import jax

        positional, named = jax.tree.unflatten(jax.tree.structure(self.dynamic), leaves)
        numbers = self._numbers
        arrays = iter(positional)
        arguments = [item if number in numbers else next(arrays) for number, item in enumerate(self.arguments)]
        return arguments, {**self.keywords, **named}

    def key(self, *, with_shardings: bool) -> Hashable:
        """Return what the program of the call depends on.

        Args:
            with_shardings: Whether the shardings of the arguments count.

        Raises:
            OptionError: a static argument cannot be hashed.
        """
        leaf_keys = tuple(_cache_key(leaf, with_sharding=with_shardings) for leaf in self.leaves)
        return self.in_tree, leaf_keys, self.static, trace_context()

    @cached_property
    def _numbers(self) -> frozenset[int]:
        """The numbers of the positional arguments that are static; further ones stand by name, or have a default."""
        count = len(self.arguments)
        places = (number + count if number < 0 else number for number in self.static_numbers)
        return frozenset(place for place in places if 0 <= place < count)

    @cached_property
    def static(self) -> Hashable:
        """The arguments that are values of Python to the function, with their types: 1 is equal to True and 1.0.

        Raises:
            OptionError: one cannot be hashed.
        """
        if not self.static_numbers and not self.static_names:
            return ()
        values = (
            *((number, self.arguments[number]) for number in sorted(self._numbers)),
            *((name, self.keywords[name]) for name in sorted(self.static_names) if name in self.keywords),
        )
        static = tuple((place, type(value), value) for place, value in values)
        try:
            hash(static)
        except TypeError as error:
            message = f"a static argument cannot be hashed: {error}"
            raise OptionError(Diagnostic("unhashable-argument", message, hint="give a tuple for a list")) from None
        return static

    def shapes(self, *, with_shardings: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with shapes in the place of arrays, to lower the function for."""
        import jax

        def shape(leaf: Any) -> Any:
            if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
                return leaf
            sharding = committed_sharding(leaf) if with_shardings else None
            weak = getattr(getattr(leaf, "aval", leaf), "weak_type", False)
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=weak)

        names = set(self.static_names)
        numbers = self._numbers
        positional = tuple(
            item if number in numbers else jax.tree.map(shape, item) for number, item in enumerate(self.arguments)
        )
        return positional, {
            name: item if name in names else jax.tree.map(shape, item) for name, item in self.keywords.items()
        }

    @property
    def is_traced(self) -> bool:
        """True if an argument is a value that JAX traces."""
        import jax

        return any(isinstance(leaf, jax.core.Tracer) for leaf in self.leaves)

    @property
    def leaves(self) -> list[Any]:
        """The arrays, one after the other."""
        return self._flat[0]

    @property
    def in_tree(self) -> Any:
        """The tree of the arrays."""
        return self._flat[1]

    @cached_property
    def _flat(self) -> tuple[list[Any], Any]:
        """The leaves of the arrays, and their tree."""
        import jax

        return jax.tree.flatten(self.dynamic)


def memory_options(**shardings: Any) -> dict[str, Any]:
    """Return options of `jax.jit` with those shardings that name a memory, which the lowered module has to say.

    Args:
        shardings: Trees of shardings in any form, by option.

    Raises:
        OptionError: those of arguments are by name, which `jax.jit` does not take.
    """
    import jax

    def of_memory(leaf: Any) -> Any:
        return leaf if memory_of_spec(leaf) is not None else None

    trees = {name: jax.tree.map(of_memory, tree, is_leaf=is_leaf) for name, tree in shardings.items()}
    options = {name: tree for name, tree in trees.items() if jax.tree.leaves(tree)}
    if isinstance(options.get("in_shardings"), Mapping):
        message = "in_shardings gives memories of arguments by their names"
        hint = "give a tuple with the sharding, or a tree of shardings, of each argument"
        raise OptionError(Diagnostic("invalid-in-shardings", message, hint=hint))
    return options


def lower_call(function: Callable[..., Any], call: CallArguments, *, with_shardings: bool, **options: Any) -> Any:
    """Return the ``Lowered`` of a plain function for the shapes of a call.

    Args:
        function: The function.
        call: The call.
        with_shardings: Whether the shardings of the arguments count.
        options: Options of `jax.jit`.

    Raises:
        OptionError: JAX is missing, or cannot lower the function.
        Exception: what the function, or JAX while it traces it, raises.
    """
    require_library("jax", purpose="tracing a function needs", extra="jax")
    import jax

    positional, named = call.shapes(with_shardings=with_shardings)
    # What the function raises is the caller's, as with `jax.jit`.
    traced = jax.jit(function, **options).trace(*positional, **named)
    with catch_warnings():
        # JAX does not know the shards yet.
        filterwarnings("ignore", message=UNUSABLE)
        return lower_traced(traced)


def call_constrained(
    function: Callable[..., Any], call: CallArguments, signature: JaxSignature, program: Program, main: Op, devices: Any
) -> Any:
    """Return the results of a function that JAX traces, with the shardings of a propagated program as constraints.

    Args:
        function: The function.
        call: The call.
        signature: The trees of its arguments and results.
        program: The propagated program.
        main: Its main function.
        devices: The devices; the first ones of ``jax.devices()`` by default.
    """
    import jax

    leaves, tree = jax.tree.flatten((tuple(call.arguments), dict(call.keywords)))
    dynamic = jax.tree.leaves(call.dynamic)
    known = {identity(leaf): index for index, leaf in enumerate(dynamic)}
    numbers = [known.get(identity(leaf)) for leaf in leaves]
    used = [dynamic[number] for number in signature.used]
    constrained = dict(
        zip(signature.used, _constrain(used, program, main, of_results=False, devices=devices), strict=True)
    )
    inner = [
        leaf if number is None else constrained.get(number, leaf) for leaf, number in zip(leaves, numbers, strict=True)
    ]
    arguments, keywords = jax.tree.unflatten(tree, inner)
    results, structure = jax.tree.flatten(function(*arguments, **keywords))
    return jax.tree.unflatten(structure, _constrain(results, program, main, of_results=True, devices=devices))


def _constrain(values: Sequence[Any], program: Program, main: Op, *, of_results: bool, devices: Any) -> list[Any]:
    """Return arrays, or values that JAX traces, with the shardings of arguments or results of a propagated program."""
    import jax

    meshes = program.meshes
    if not meshes:
        return list(values)
    chosen = choose_devices(device_count(meshes.values()), devices, meshes)
    program_values = main.function_results if of_results else main.regions[0].blocks[0].arguments
    constrained = []
    for value, inner in zip(values, program_values, strict=True):
        sharding = program.shardings.get(inner.id)
        has_sub_axes = sharding is not None and any(axis.sub_axis for axis in sharding.axes())
        is_key = jax.dtypes.issubdtype(getattr(value, "dtype", None) or float, jax.dtypes.prng_key)
        if sharding is None or has_sub_axes or is_key:
            constrained.append(value)
        else:
            constrained.append(jax.lax.with_sharding_constraint(value, to_named_sharding(sharding, meshes, chosen)))
    return constrained


def constrain_results(values: Sequence[Any], program: Program, main: Op, devices: Any) -> list[Any]:
    """Return the results of a propagated program, constrained to the shardings that they have.

    Args:
        values: Values that JAX traces.
        program: The propagated program.
        main: Its main function.
        devices: The devices; the first ones of ``jax.devices()`` by default.
    """
    import jax

    meshes = program.meshes
    chosen = choose_devices(device_count(meshes.values()), devices, meshes)
    results = array_values(main.function_results)
    shardings = [to_named_sharding(program.shardings.get(item.id), meshes, chosen) for item in results]
    pairs = zip(values, shardings, strict=True)
    return [value if _is_key(value) else jax.lax.with_sharding_constraint(value, sharding) for value, sharding in pairs]


def _is_key(value: Any) -> bool:
    import jax

    return bool(jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key))


def devices_of(mesh: Any) -> list[Any] | None:
    """Return the devices of a mesh of JAX in their order; None for any other, which has none."""
    import jax

    return list(mesh.devices.ravel()) if isinstance(mesh, jax.sharding.Mesh) else None


def devices_of_shardings(*trees: Any) -> list[Any] | None:
    """Return the devices of the mesh of the first sharding of JAX in some trees, or None.

    Raises:
        OptionError: another one has them in another order.
    """
    import jax

    leaves = jax.tree.leaves(trees, is_leaf=lambda item: isinstance(item, jax.sharding.Sharding))
    meshes = [devices for leaf in leaves if (devices := devices_of(getattr(leaf, "mesh", None))) is not None]
    for devices in meshes[1:]:
        refuse_other_order(meshes[0], devices)
    return meshes[0] if meshes else None


def refuse_other_order(devices: Sequence[Any] | None, others: Sequence[Any] | None) -> None:
    """Check that two meshes of one function, where both are known, have as many devices in one order.

    Raises:
        OptionError: they have other devices, or the same in another order.
    """
    if devices is None or others is None or len(devices) != len(others) or list(devices) == list(others):
        return
    first, second = ([device.id for device in items] for items in (devices, others))
    message = f"meshes of the function have the devices {first} and {second}"
    hint = "give meshes with other axes over the same devices in the same order"
    raise OptionError(Diagnostic("mesh-conflict", message, hint=hint))


def devices_of_arguments(call: CallArguments) -> list[Any] | None:
    """Return the devices of the mesh that an argument is distributed over, or None."""
    import jax

    for leaf in jax.tree.leaves(call.dynamic):
        sharding = committed_sharding(leaf)
        if sharding is not None:
            return devices_of(sharding.mesh)
    return None


def _cache_key(leaf: Any, *, with_sharding: bool) -> Hashable:
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        return f"{type(leaf).__module__}.{type(leaf).__qualname__}"
    weak = getattr(getattr(leaf, "aval", leaf), "weak_type", False)
    return tuple(leaf.shape), leaf.dtype, weak, committed_sharding(leaf) if with_sharding else None
