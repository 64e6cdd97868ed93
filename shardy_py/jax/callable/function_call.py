"""Functions of flat arrays that are propagated here, with their derivatives and their batched forms.

JAX cannot differentiate StableHLO. So a function is differentiated before it is propagated: what is left to compute for
tangents, and the transpose of that, are functions that are propagated, too. Their arguments, the residuals, have the
shardings with which the first function gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import evolve, field

from shardy_py.api.propagate import propagate
from shardy_py.ir.graph.program import Value
from shardy_py.jax.arguments import array_values
from shardy_py.jax.callable.contexts import in_context
from shardy_py.jax.modules import lower_function
from shardy_py.jax.result_types import as_type
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import OPEN, DimensionSharding, TensorSharding
from shardy_py.values import define, frozen

if TYPE_CHECKING:
    from shardy_py.api.result import Result
    from shardy_py.jax.callable.device_program import DeviceProgram

Shardings = tuple[TensorSharding | None, ...]
LazyShardings = Callable[[], Shardings]
"""Shardings that are known once another function is propagated."""


@frozen(eq=False)
class CallOptions:
    """Options with which a function and all that is derived of it are propagated.

    Args:
        mesh: The mesh of shardy_py, of the first function; None where it has none.
        devices: The devices by the numbers of the mesh; None for those of JAX.
        schedule: The order of ops, as for `propagate`.
        options: More options of `propagate`.
        has_x64: Whether JAX has 64-bit types.
        compiler_options: Options of XLA.
        context: The axes of the mesh around the call that are free, as an abstract mesh of JAX; None outside of one.
    """

    mesh: Mesh | None
    devices: Sequence[Any] | None
    schedule: Any
    options: Mapping[str, Any]
    has_x64: bool
    compiler_options: Mapping[str, Any]
    context: Any = None


@define(eq=False, slots=False)
class FunctionCall:
    """A function for arguments of known shapes; its program is made once it is needed.

    Attributes:
        function: Takes flat arrays, and returns a flat sequence of them.
        arguments: The shapes and dtypes of the arguments.
        results: Those of the results.
        options: The options with which it is propagated.
        in_shardings: The shardings of the arguments; None for all that propagation decides.
        out_shardings: The shardings of the results.
        result: The propagated program, where it is known already.
        used: The numbers of the arguments that this program takes; None for all.
        effects: The side effects of the function: ``""``, ``"unordered"`` or ``"ordered"``.
    """

    function: Callable[..., Sequence[Any]]
    arguments: tuple[Any, ...]
    results: tuple[Any, ...]
    options: CallOptions
    in_shardings: LazyShardings | None = None
    out_shardings: LazyShardings | None = None
    result: Result | None = None
    used: tuple[int, ...] | None = None
    effects: str = ""
    _derived: dict[Any, Any] = field(factory=dict, init=False, repr=False)

    def __repr__(self) -> str:
        # It stands in texts of jaxprs.
        return f"<propagated {getattr(self.function, '__name__', 'function')}>"

    @cached_property
    def program(self) -> DeviceProgram:
        """The program as a function of JAX.

        Raises:
            ShardyError: it cannot be lowered or propagated.
        """
        options = self.options
        if self.result is None:
            with in_context(options.context, has_x64=options.has_x64):
                import jax

                lowered = lower_function(jax.jit(self.function, keep_unused=True), self.arguments, {})
                self.result = propagate(
                    lowered,
                    options.mesh,
                    in_shardings=None if self.in_shardings is None else self.in_shardings(),
                    out_shardings=None if self.out_shardings is None else self.out_shardings(),
                    schedule=options.schedule,
                    **options.options,
                )
        return self.result.to_jax(options.devices, compiler_options=options.compiler_options)

    def run(self, *arrays: Any) -> list[Any]:
        """Return the results for arrays, or for values that JAX traces."""
        used = arrays if self.used is None else [arrays[number] for number in self.used]
        pairs = zip(self.program.run(*used), self.results, strict=True)
        return [as_type(array, type_) for array, type_ in pairs]

    def argument_shardings(self) -> Shardings:
        """Return the shardings of all arguments, as propagated; None for those that the program does not take."""
        from shardy_py.ir.graph.shardings import entry_arguments

        shardings = self._shardings(lambda result: entry_arguments(result.main))
        if self.used is None:
            return shardings
        known = dict(zip(self.used, shardings, strict=True))
        return tuple(known.get(number) for number in range(len(self.arguments)))

    def result_shardings(self) -> Shardings:
        """Return the shardings of the results, as propagated."""
        return self._shardings(lambda result: result.main.function_results)

    def result_specs(self) -> list[Any]:
        """Return the ``PartitionSpec`` of each result, for types of JAX that say shardings."""
        from shardy_py.jax.named_shardings import to_partition_spec

        shardings = self.known_out_shardings()
        meshes = {str(item.mesh): item.mesh for item in shardings if item is not None and isinstance(item.mesh, Mesh)}
        return [to_partition_spec(sharding, meshes) for sharding in shardings]

    def _shardings(self, values: Callable[[Result], Sequence[Value]]) -> Shardings:
        assert self.program is not None
        result = self.result
        assert result is not None
        table, meshes = result.program.shardings, result.program.meshes
        shardings = [table.get(value.id) for value in array_values(values(result))]
        return tuple(_portable(sharding, meshes) for sharding in shardings)

    def linearized(self, moving: Sequence[int]) -> tuple[FunctionCall, FunctionCall]:
        """Return the function with its residuals as more results, and what it does to tangents.

        Args:
            moving: The numbers of the arguments that have tangents.

        Returns:
            The function that returns its results, then the residuals; and the function from residuals and
            tangents to the tangents of the results that have some.
        """
        key = ("linearized", tuple(moving))
        if key not in self._derived:
            self._derived[key] = self._linearize(tuple(moving))
        calls: tuple[FunctionCall, FunctionCall] = self._derived[key]
        return calls

    def _linearize(self, moving: tuple[int, ...]) -> tuple[FunctionCall, FunctionCall]:
        import jax

        trees: list[Any] = []
        differentiable = [number for number, shape in enumerate(self.results) if _is_inexact(shape.dtype)]

        def forward(*arrays: Any) -> Sequence[Any]:
            def moved(*values: Any) -> tuple[Any, Any]:
                inputs = list(arrays)
                for number, value in zip(moving, values, strict=True):
                    inputs[number] = value
                results = list(self.function(*inputs))
                return tuple(results[number] for number in differentiable), results

            _, tangents, results = jax.linearize(moved, *(arrays[number] for number in moving), has_aux=True)
            residuals, tree = jax.tree.flatten(tangents)
            trees.append(tree)
            return (*results, *residuals)

        with in_context(self.options.context, has_x64=self.options.has_x64):
            shapes = tuple(map(_plain_shape, jax.eval_shape(forward, *self.arguments)))
        count = len(self.results)
        ahead = evolve(
            self,
            function=forward,
            results=(*self.results, *shapes[count:]),
            in_shardings=self.argument_shardings,
            out_shardings=lambda: (*self.result_shardings(), *(None,) * (len(shapes) - count)),
            result=None,
            used=None,
        )

        def linear(*arrays: Any) -> Sequence[Any]:
            residuals, tangents = arrays[: len(shapes) - count], arrays[len(shapes) - count :]
            return tuple(jax.tree.unflatten(trees[-1], residuals)(*tangents))

        def residual_and_tangent_shardings() -> Shardings:
            argument_shardings = self.argument_shardings()
            return (*ahead.result_shardings()[count:], *(argument_shardings[number] for number in moving))

        behind = FunctionCall(
            function=linear,
            arguments=(*shapes[count:], *(_plain_shape(self.arguments[number]) for number in moving)),
            results=tuple(_plain_shape(self.results[number]) for number in differentiable),
            options=self.options,
            in_shardings=residual_and_tangent_shardings,
            out_shardings=lambda: tuple(self.result_shardings()[number] for number in differentiable),
        )
        return ahead, behind

    def transposed(self, linear: Sequence[int]) -> FunctionCall:
        """Return the transpose of a function that is linear in some arguments.

        Args:
            linear: The numbers of these arguments.

        Returns:
            The function from the other arguments and the cotangents of the results to the cotangents of these.
        """
        key = ("transposed", tuple(linear))
        if key not in self._derived:
            self._derived[key] = self._transpose(tuple(linear))
        call: FunctionCall = self._derived[key]
        return call

    def _transpose(self, linear: tuple[int, ...]) -> FunctionCall:
        import jax

        others = [number for number in range(len(self.arguments)) if number not in linear]
        moving = [_plain_shape(self.arguments[number]) for number in linear]

        def transpose(*arrays: Any) -> Sequence[Any]:
            known, cotangents = arrays[: len(others)], arrays[len(others) :]

            def moved(*values: Any) -> tuple[Any, ...]:
                inputs = dict(zip((*others, *linear), (*known, *values), strict=True))
                return tuple(self.function(*(inputs[number] for number in range(len(inputs)))))

            return tuple(jax.linear_transpose(moved, *moving)(tuple(cotangents)))

        def shardings_of_known() -> Shardings:
            argument_shardings = self.known_in_shardings()
            return (*(argument_shardings[number] for number in others), *self.known_out_shardings())

        return FunctionCall(
            function=transpose,
            arguments=(*(self.arguments[number] for number in others), *map(_plain_shape, self.results)),
            results=tuple(moving),
            options=self.options,
            in_shardings=shardings_of_known,
            out_shardings=lambda: tuple(self.known_in_shardings()[number] for number in linear),
        )

    def known_in_shardings(self) -> Shardings:
        """Return the shardings that arguments get, without propagating where they are given."""
        return self.argument_shardings() if self.in_shardings is None else self.in_shardings()

    def known_out_shardings(self) -> Shardings:
        """Return the shardings that results get, without propagating where they are given."""
        return self.result_shardings() if self.out_shardings is None else self.out_shardings()

    def batched(self, size: int, dims: Sequence[int | None], axes: Sequence[tuple[str, ...]]) -> FunctionCall:
        """Return the function for a batch; results have the batch as their first dimension.

        Args:
            size: The size of the batch.
            dims: The dimension of each argument that is the batch; None for those that all have in common.
            axes: The axes that the batch of each argument is known to be sharded along.
        """
        key = ("batched", size, tuple(dims), tuple(axes))
        if key not in self._derived:
            self._derived[key] = self._batch(size, tuple(dims), tuple(axes))
        call: FunctionCall = self._derived[key]
        return call

    def _batch(self, size: int, dims: tuple[int | None, ...], axes: tuple[tuple[str, ...], ...]) -> FunctionCall:
        import jax

        def shape(known: Any, dim: int | None) -> Any:
            if dim is None:
                # It may be a number of Python.
                return known
            sizes = list(known.shape)
            sizes.insert(dim, size)
            return jax.ShapeDtypeStruct(tuple(sizes), known.dtype)

        results = [jax.ShapeDtypeStruct((size, *known.shape), known.dtype) for known in self.results]
        return evolve(
            self,
            function=jax.vmap(lambda *arrays: tuple(self.function(*arrays)), in_axes=dims, out_axes=0, axis_size=size),
            arguments=tuple(map(shape, self.arguments, dims)),
            results=tuple(results),
            in_shardings=lambda: tuple(map(self._with_batch, self.known_in_shardings(), dims, self.arguments, axes)),
            out_shardings=None,
            result=None,
            used=None,
        )

    def _with_batch(
        self, sharding: TensorSharding | None, dim: int | None, argument: Any, axes: tuple[str, ...]
    ) -> TensorSharding | None:
        """Return the sharding of an argument with one more dimension, which propagation may shard if nothing does."""
        if dim is None or self.options.mesh is None:
            return sharding
        rank = len(argument.shape)
        if sharding is None or sharding.rank != rank:
            # A sharding on one device has no dimensions, whatever the array has.
            if not axes:
                return sharding
            sharding = TensorSharding(self.options.mesh, (OPEN,) * rank)
        dims = list(sharding.dim_shardings)
        is_free = not {axis.name for axis in sharding.axes()}.intersection(axes)
        batch = DimensionSharding(tuple(map(AxisRef, axes)), is_closed=True) if axes and is_free else OPEN
        dims.insert(dim, batch)
        return evolve(sharding, dim_shardings=tuple(dims))


def _is_inexact(dtype: Any) -> bool:
    import jax

    return bool(jax.dtypes.issubdtype(dtype, jax.numpy.inexact))


def _plain_shape(shape: Any) -> Any:
    import jax

    return jax.ShapeDtypeStruct(shape.shape, shape.dtype)


def _portable(sharding: TensorSharding | None, meshes: Mapping[str, Mesh]) -> TensorSharding | None:
    """Return a sharding with its mesh, for another program."""
    if sharding is None or isinstance(sharding.mesh, Mesh):
        return sharding
    return evolve(sharding, mesh=meshes[sharding.mesh])
