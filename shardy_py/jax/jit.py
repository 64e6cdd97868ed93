"""`jit`: functions of JAX that are propagated here, with the user's own schedule, and run on the devices of JAX."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, update_wrapper
from inspect import signature
from types import MethodType
from typing import TYPE_CHECKING, Any
from warnings import warn

from attrs import evolve, fields_dict

from shardy_py.api.options import PropagateArguments
from shardy_py.errors import Diagnostic, OptionError, did_you_mean
from shardy_py.jax.callable.compilation import refuse_traced_options
from shardy_py.jax.callable.contexts import (
    concrete_context_mesh,
    free_mesh,
    has_x64,
    in_context,
    is_disabled,
    is_not_finite,
)
from shardy_py.jax.callable.dispatch import dispatcher, has_deleted
from shardy_py.jax.callable.function_call import FunctionCall
from shardy_py.jax.callable.function_primitive import bind_call
from shardy_py.jax.callable.repeated_calls import RepeatedCall, RepeatedCalls
from shardy_py.jax.callable.traced_calls import traced_call
from shardy_py.jax.calls import (
    CallArguments,
    call_constrained,
    constrain_results,
    devices_of,
    devices_of_arguments,
    devices_of_shardings,
    lower_call,
    memory_options,
    refuse_other_order,
)
from shardy_py.jax.donations import warn_of_unusable_donations
from shardy_py.jax.jit_settings import Settings
from shardy_py.jax.lowered_call import LoweredCall, has_axes
from shardy_py.jax.sharding_trees import has_specs, is_decided, refuse_other_trees
from shardy_py.support.arguments import shown
from shardy_py.support.identity import identity
from shardy_py.transforms.reduced_shardings import CODE as REDUCED

if TYPE_CHECKING:
    from shardy_py.cost.estimates import Cost
    from shardy_py.explain.answer.explanations import ValueExplanation
    from shardy_py.jax.result_methods import Partitioner
    from shardy_py.schedule.from_options import ScheduleLike


def jit(
    function: Callable[..., Any] | None = None,
    mesh: Any = None,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    schedule: ScheduleLike | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    device: Any = None,
    backend: str | None = None,
    compiler_options: Mapping[str, Any] | None = None,
    partitioner: Partitioner = "shardy_py",
    **options: Any,
) -> Any:
    """Return a function that propagates shardings with a schedule of its own, and runs as that of `jax.jit` does.

    It is traced, propagated and compiled once for all calls with the same shapes, types and shardings of arguments.
    Each device runs its local program, also under `jax.jit`, in loops, and in a ``shard_map`` over other axes. What
    `jax.grad`, `jax.jvp` and `jax.vmap` make of the function is propagated, too.

    With XLA's partitioner the function itself is traced under transformations of JAX, with the shardings of its
    arguments and results as constraints.

    Args:
        function: The function; without one, `jit` returns a decorator.
        mesh: A mesh of JAX, or a mapping of axis sizes; by default that of the shardings, or of ``jax.set_mesh``.
        in_shardings: The shardings of positional arguments, in the trees that `jax.jit` takes, or a mapping from names
            of arguments to shardings; by default those of the arrays.
        out_shardings: The shardings of results; by default propagation decides.
        schedule: The order of ops, as for `propagate`; by default that of `jax.jit`.
        donate_argnums: The numbers of arguments whose memory the results may take.
        donate_argnames: The names of such arguments; numbers or names alone mean both, as with `jax.jit`.
        static_argnums: The numbers of arguments that are values of Python to the function.
        static_argnames: The names of such arguments; numbers or names alone mean both.
        keep_unused: Whether arguments that the function does not use stay arguments of its program.
        inline: Whether the function becomes part of the jaxpr around it; with XLA's partitioner it does.
        device: The device of a function that runs on one.
        backend: The platform of the device of such a function, as ``"cpu"``.
        compiler_options: Options of XLA, for calls that JAX does not trace.
        partitioner: ``shardy_py`` for the local program, ``xla`` for XLA's partitioner.
        options: Options of `propagate`, such as ``strategy`` or ``plugins``.

    Raises:
        OptionError: the function cannot be called.
    """
    _refuse_unknown_options(options)
    settings = Settings(
        mesh=mesh,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        schedule=schedule,
        donate=(donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums or ()),
        donate_names=(donate_argnames,) if isinstance(donate_argnames, str) else tuple(donate_argnames or ()),
        static_numbers=(static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums or ()),
        static_names=(static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames or ()),
        keep_unused=keep_unused,
        inline=inline,
        device=device,
        backend=backend,
        compiler_options=dict(compiler_options or {}),
        partitioner=partitioner,
        options=options,
    )
    if function is None:
        return lambda inner: JitFunction.of(inner, settings)
    return JitFunction.of(function, settings)


class JitFunction:
    """A function that is propagated here and runs on the devices of JAX; see `jit`."""

    def __init__(self, function: Callable[..., Any], settings: Settings) -> None:
        self._function = function
        self._settings = settings
        self._calls: dict[Hashable, LoweredCall] = {}
        self._traced_calls: dict[int, FunctionCall] = {}
        self._has_static = bool(settings.static_numbers or settings.static_names)
        self._repeated = RepeatedCalls()
        self._dispatch: Callable[..., Any] | None = None
        self._latest: LoweredCall | None = None
        update_wrapper(self, function, updated=())

    @classmethod
    def of(cls, function: Callable[..., Any], settings: Settings) -> JitFunction:
        """Return the function with the arguments of `jit`.

        Raises:
            OptionError: it cannot be called.
        """
        if not callable(function):
            message = f"jit takes a function, not {shown(function)}"
            raise OptionError(Diagnostic("invalid-argument", message, hint="sdy.jit(function, mesh)"))
        inner = getattr(function, "__wrapped__", function) if hasattr(function, "lower") else function
        return cls(inner, settings.for_function(inner))

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the function; see `jit`.

        Raises:
            ShardyError: it cannot be lowered, propagated or compiled, or an argument does not fit.
        """
        try:
            if self._dispatch is None or has_deleted((arguments, keywords)):
                return self._run(arguments, keywords)[0]
            return self._dispatch(*arguments, **keywords)
        except Exception as error:
            if not is_not_finite(error):
                raise
            self._find_not_finite(arguments, keywords)
            message = f"a result of {self!r} has an invalid value: {error}"
            raise FloatingPointError(message) from None

    def _find_not_finite(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        """Run the function op by op, so that the first one that gives no finite number raises an error; as `jax.jit`.

        Raises:
            FloatingPointError: an op does.
        """
        import jax

        if not has_deleted((arguments, keywords)):
            with jax.disable_jit():
                self._function(*arguments, **keywords)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the function bound to an object, as a method is."""
        return self if instance is None else MethodType(self, instance)

    def _prepare(self, *arguments: Any, **keywords: Any) -> tuple[Any, Any, bool]:
        """Run the function for a call that JAX's dispatch does not know yet; see `dispatcher`."""
        results, repeated = self._run(arguments, keywords)
        return results, None if repeated is None else repeated.dispatch_data(results), False

    def _run(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Any, RepeatedCall | None]:
        """Return the results of a call, and its program if it came before."""
        import jax

        call = None
        if self._has_static:
            call = self._call(arguments, keywords)
            leaves, tree, static = call.leaves, call.in_tree, call.static
        else:
            (leaves, tree), static = jax.tree.flatten((arguments, keywords)), ()
        repeated = self._repeated.find(leaves, tree, static)
        if repeated is not None:
            self._latest = repeated.lowered
            return repeated.run(leaves), repeated
        return self._first_call(call or self._call(arguments, keywords)), None

    def _first_call(self, call: CallArguments) -> Any:
        """Return the results of a call that did not come before, or that has to be prepared each time."""
        if is_disabled():
            return self._function(*call.arguments, **call.keywords)
        key = self._key(call)
        lowered = self._calls.get(key)
        if lowered is None:
            with in_context(free_mesh(), has_x64=has_x64()):
                lowered = self._lower(call, key)
        self._latest = lowered
        if call.is_traced:
            return self._traced(call, lowered)
        is_undecided = lowered.devices is None or self._settings.is_on_one_device
        if is_undecided and not has_axes(lowered.result.program):
            # On one device there is nothing to propagate, and JAX knows best which one.
            return self._on_one_device(*call.arguments, **call.keywords)
        self._repeated.add(call, lowered)
        positional, named = call.dynamic
        return lowered.compile()(*positional, **named)

    @cached_property
    def _on_one_device(self) -> Any:
        """The function as JAX compiles it."""
        import jax

        settings = self._settings
        options = settings.of_arguments()
        if settings.compiler_options:
            options["compiler_options"] = dict(settings.compiler_options)
        return jax.jit(self._function, **options)

    def trace(self, *arguments: Any, **keywords: Any) -> Any:
        """Return JAX's own `jax.stages.Traced` of a program that calls this function.

        What it is lowered and compiled to is the program that `lower` propagates, and its jaxpr is that of the call:
        one op where something is sharded.

        Raises:
            ShardyError: the function cannot be lowered or propagated.
        """
        import jax

        if self._settings.is_on_one_device:
            return self._on_one_device.trace(*arguments, **keywords)
        lowered = self.lower(*arguments, **keywords)
        options = {**self._settings.of_arguments(), **lowered.jit_shardings()}
        positional, named = self._call(arguments, keywords).shapes(with_shardings=False)
        if named:
            # JAX takes none beside arguments by keyword, static ones included.
            options.pop("in_shardings", None)
        return jax.jit(self, **options).trace(*positional, **named)

    def eval_shape(self, *arguments: Any, **keywords: Any) -> Any:
        """Return a `jax.ShapeDtypeStruct` for each result, in their tree, without propagating.

        Those that have been given a sharding of JAX, or a spec with a mesh of JAX, have it; ``lower(...).out_info``
        has all shardings.
        """
        import jax

        traced = jax.jit(self._function, **self._settings.of_arguments()).trace(*arguments, **keywords)
        types, tree = jax.tree.flatten(traced.out_info)
        given = self._settings.given_out_shardings(tree)
        for number, item in enumerate(given):
            if isinstance(item, jax.sharding.PartitionSpec) and isinstance(self._settings.mesh, jax.sharding.Mesh):
                item = jax.sharding.NamedSharding(self._settings.mesh, item)
            if isinstance(item, jax.sharding.Sharding):
                known = types[number]
                types[number] = jax.ShapeDtypeStruct(known.shape, known.dtype, sharding=item, weak_type=known.weak_type)
        return tree.unflatten(types)

    def lower(self, *arguments: Any, **keywords: Any) -> LoweredCall:
        """Return the function for the shapes of arguments, which may be arrays or `jax.ShapeDtypeStruct`.

        Raises:
            ShardyError: it cannot be lowered or propagated.
        """
        call = self._call(arguments, keywords)
        key = self._key(call)
        self._latest = self._calls.get(key) or self._lower(call, key)
        return self._latest

    def explain(self, value: Any, dim: int | None = None) -> ValueExplanation:
        """Return why a value of the latest call is sharded as it is; see `LoweredCall.explain`.

        Args:
            value: The value, by the name of an argument or a result, or of an op.
            dim: The dimension; None for all.

        Raises:
            OptionError: there is no such value, or there was no call yet.
        """
        return self._latest_call().explain(value, dim)

    def cost(self, machine: Any = None, **options: Any) -> Cost:
        """Return what the latest call costs on one device; see `LoweredCall.cost`.

        Args:
            machine: A machine, the name of one that comes along, or a TOML file; without one there are no times.
            options: More options of `Result.cost`.

        Raises:
            OptionError: there was no call yet, or an option is not valid.
        """
        return self._latest_call().cost(machine, **options)

    def clear_cache(self) -> None:
        """Forget all compiled programs."""
        self._calls.clear()
        self._traced_calls.clear()
        self._repeated.clear()
        self._dispatch = None

    def __repr__(self) -> str:
        return f"<sdy.jit of {getattr(self._function, '__name__', type(self._function).__name__)}>"

    def _call(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> CallArguments:
        return CallArguments(arguments, keywords, self._settings.static_numbers, self._settings.static_names)

    def _key(self, call: CallArguments) -> Hashable:
        """Return what the program of a call depends on."""
        return call.key(with_shardings=self._settings.in_shardings is None)

    def _lower(self, call: CallArguments, key: Hashable) -> LoweredCall:
        """Return the function for the shapes of a call, and keep it for calls with the same key."""
        import jax

        settings = self._settings
        lowered = lower_call(
            self._function,
            call,
            with_shardings=settings.in_shardings is None,
            **settings.of_arguments(),
            **memory_options(in_shardings=settings.in_shardings, out_shardings=settings.out_shardings),
        )
        refuse_other_trees(
            self._function, settings.in_shardings, lowered.in_tree, settings.out_shardings, lowered.out_tree
        )
        settings_devices = devices_of_shardings(settings.in_shardings, settings.out_shardings)
        if settings.mesh is None and not call.is_traced and has_specs(settings.in_shardings, settings.out_shardings):
            # The call is propagated again, as for an explanation, where the mesh may not be set any more.
            settings = evolve(settings, mesh=concrete_context_mesh())
        mesh_devices = devices_of(settings.mesh)
        refuse_other_order(mesh_devices, settings_devices)
        result = settings.propagate(lowered)
        is_placed = call.is_traced or settings.is_on_one_device or has_axes(result.program)
        context = None if is_placed else concrete_context_mesh()
        if context is not None:
            # All devices of the mesh of the context run a function in which nothing is sharded.
            settings = evolve(settings, mesh=context)
            mesh_devices, result = devices_of(context), settings.propagate(lowered)
        devices = mesh_devices or settings_devices or devices_of_arguments(call)
        if settings.is_on_one_device:
            devices = [settings.device or jax.local_devices(backend=settings.backend)[0]]
        for item in result.warnings:
            if item.code == REDUCED:
                warn(item.show("warning"), stacklevel=5)
        # Propagation, and not the user, decides whether results that it may shard can take the place of arguments.
        are_decided = map(is_decided, settings.given_out_shardings(lowered.out_tree))
        if not call.is_traced and (not has_axes(result.program) or all(are_decided)):
            warn_of_unusable_donations(result, stacklevel=5)
        traced_devices = None if result.signature is None else result.signature.devices
        refuse_other_order(mesh_devices or settings_devices, traced_devices)
        lowered_call = self._calls[key] = LoweredCall(lowered, result, settings, devices)
        # With several programs, which one ran last is known here only.
        is_only = len(self._calls) == 1 and not self._has_static
        self._dispatch = dispatcher(self._function, self._prepare) if is_only else None
        return lowered_call

    def _traced(self, call: CallArguments, lowered: LoweredCall) -> Any:
        """Return the results of the function while JAX traces."""
        import jax

        result = lowered.result
        if self._settings.is_on_one_device:
            return self._on_one_device(*call.arguments, **call.keywords)
        if result.signature is None or not has_axes(result.program):
            # On one device there is nothing to propagate, and JAX traces a function best.
            return self._function(*call.arguments, **call.keywords)
        if self._settings.partitioner == "shardy_py":
            key = identity(lowered)
            if key not in self._traced_calls:
                self._traced_calls[key] = traced_call(self._function, call, lowered)
            results = bind_call(self._traced_calls[key], jax.tree.leaves(call.dynamic))
            if jax.sharding.get_abstract_mesh().empty:
                # Without arrays or a context that say so, JAX would not know over how many devices it compiles.
                results = constrain_results(results, result.program, result.main, lowered.devices)
            return result.signature.unflatten_results(results)
        refuse_traced_options(self._settings.compiler_options)
        return call_constrained(self._function, call, result.signature, result.program, result.main, lowered.devices)

    def _latest_call(self) -> LoweredCall:
        if self._latest is None:
            message = "the function was not called yet, and has no program"
            raise OptionError(Diagnostic("not-called", message, hint="call it, or lower(*arguments) first"))
        return self._latest


def _refuse_unknown_options(options: Mapping[str, Any]) -> None:
    """Check that all further keywords of `jit` are options of `propagate`.

    Raises:
        TypeError: one is not.
    """
    known = fields_dict(PropagateArguments)
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None:
        close = did_you_mean(unknown, {**signature(jit).parameters, **known})
        raise TypeError(f"jit() got an unexpected keyword argument {unknown!r}{f'; {close}' if close else ''}")
