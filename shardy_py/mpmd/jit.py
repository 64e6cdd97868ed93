"""`jit`: functions of JAX whose named computations run on several meshes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, update_wrapper
from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic, OptionError, require_library
from shardy_py.jax.callable.committed import committed_sharding
from shardy_py.jax.callable.contexts import trace_context
from shardy_py.jax.devices import choose_devices
from shardy_py.jax.named_shardings import over_mesh
from shardy_py.jax.result_types import as_type
from shardy_py.mpmd.partitioning import read_topology
from shardy_py.mpmd.pipeline_program import PipelineProgram, partition
from shardy_py.support.arguments import shown
from shardy_py.values import define, frozen


def jit(
    function: Callable[..., Any] | None = None,
    *,
    topology: Mapping[str, Any],
    assignment: Mapping[str, str] | Iterable[str],
    schedule: str | None = "1F1B",
    in_shardings: Any = None,
    devices: Mapping[str, Sequence[Any]] | None = None,
    **options: Any,
) -> Any:
    """Return a function that runs its named computations on their meshes, as a schedule orders them.

    It is traced and partitioned once for all calls with the same trees, shapes and types.

    Args:
        function: The function; without one, `jit` returns a decorator.
        topology: Name to mesh: a mapping of axis sizes, a `Mesh`, or a mesh of JAX, whose devices are used.
        assignment: Name of a computation or tensor to mesh; see `partition`.
        schedule: The name of the schedule; None for the order of the program.
        in_shardings: The specs of arguments, in the tree that `jax.jit` takes; axes are those of the first mesh.
        devices: The devices of each mesh; by default each gets the next ones of ``jax.devices()``.
        options: Options of `partition`, such as ``infer_transfers``.

    Raises:
        OptionError: the topology is not valid.
    """
    require_library("jax", purpose="functions over several meshes need", extra="jax")
    read_topology(topology)
    settings = _Settings(topology, assignment, schedule, in_shardings, devices, options)
    if function is None:
        return lambda inner: PipelineFunction.of(inner, settings)
    return PipelineFunction.of(function, settings)


@frozen(eq=False)
class _Settings:
    """Arguments of `jit` besides the function, with the same names."""

    topology: Mapping[str, Any]
    assignment: Mapping[str, str] | Iterable[str]
    schedule: str | None
    in_shardings: Any
    devices: Mapping[str, Sequence[Any]] | None
    options: Mapping[str, Any]


@define(eq=False)
class LoweredPipeline:
    """A function for the shapes of one call: a program over several meshes, called with the function's trees.

    Attributes:
        program: The program.
        in_tree: The tree of the positional arguments and those by keyword.
        out_info: The shapes and types of the results, in their tree.
    """

    program: PipelineProgram
    in_tree: Any
    out_info: Any
    _devices: Mapping[str, Sequence[Any]] | None = None
    _execution: Any = field(default=None, init=False, repr=False)

    def as_text(self) -> str:
        """Return the program as MLIR of the mpmd dialect."""
        return self.program.text

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the program with the trees of the function; results are arrays on the meshes that make them.

        Raises:
            OptionError: the arguments are not of the trees, shapes or types that it was lowered for.
        """
        import jax

        leaves, tree = jax.tree_util.tree_flatten((arguments, keywords))
        if tree != self.in_tree:
            message = f"expected arguments in the tree {self.in_tree}, got {tree}"
            raise OptionError(Diagnostic("argument-tree", message, hint="lower the function again for these"))
        if self._execution is None:
            self._execution = self.program.execution(self._devices)
        results = self._execution(*map(_as_jax_reads, leaves))
        types, out_tree = jax.tree_util.tree_flatten(self.out_info)
        return jax.tree_util.tree_unflatten(out_tree, map(as_type, results, types))


class PipelineFunction:
    """A function of JAX that `jit` wrapped."""

    def __init__(self, function: Callable[..., Any], settings: _Settings) -> None:
        self._function = function
        self._settings = settings
        self._lowered: dict[Any, LoweredPipeline] = {}

    @classmethod
    def of(cls, function: Callable[..., Any], settings: _Settings) -> PipelineFunction:
        """Return the wrapped function, with its name and docstring."""
        if not callable(function):
            message = f"a {type(function).__name__} is not a function"
            raise OptionError(Diagnostic("invalid-function", message, hint="sdy.mpmd.jit(step, topology=..., ...)"))
        wrapped = cls(function, settings)
        update_wrapper(wrapped, function)
        return wrapped

    def lower(self, *arguments: Any, **keywords: Any) -> LoweredPipeline:
        """Return the program for the shapes of some arguments: arrays, or what `jax.eval_shape` returns.

        Raises:
            OptionError: there are `in_shardings`, which have no place for arguments by keyword, and such arguments.
            ShardyError: a name has no mesh, or the program cannot be partitioned.
        """
        import jax

        if keywords and self._settings.in_shardings is not None:
            message = f"in_shardings are for positional arguments, and {', '.join(keywords)} are given by keyword"
            hint = "give all arguments by position, or arrays that are distributed, without in_shardings"
            raise OptionError(Diagnostic("invalid-in-shardings", message, hint=hint))
        leaves, tree = jax.tree_util.tree_flatten((arguments, keywords))
        types = tuple(
            (tuple(jax.numpy.shape(leaf)), str(jax.numpy.result_type(leaf)), _is_weak(leaf)) for leaf in leaves
        )
        key = tree, types, trace_context()
        if key not in self._lowered:
            self._lowered[key] = self._lower(arguments, keywords, tree)
        return self._lowered[key]

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the function; see `LoweredPipeline.__call__`."""
        return self.lower(*arguments, **keywords)(*arguments, **keywords)

    def _lower(self, arguments: Sequence[Any], keywords: Mapping[str, Any], tree: Any) -> LoweredPipeline:
        import jax

        settings = self._settings
        shardings = {} if settings.in_shardings is None else {"in_shardings": self._in_shardings()}
        positional, named = jax.tree_util.tree_map(self._shape, (arguments, dict(keywords)))
        lowered = jax.jit(self._function, keep_unused=True, **shardings).lower(*positional, **named)
        program = partition(
            lowered, settings.topology, settings.assignment, schedule=settings.schedule, **settings.options
        )
        return LoweredPipeline(program, tree, lowered.out_info, settings.devices or self._devices_of_meshes())

    def _devices_of_meshes(self) -> Mapping[str, Sequence[Any]] | None:
        """Return the devices of meshes of JAX; None where no mesh has any."""
        devices = {
            name: list(mesh.devices.flat) for name, mesh in self._settings.topology.items() if hasattr(mesh, "devices")
        }
        return devices or None

    def _shape(self, leaf: Any) -> Any:
        """Return the shape of an argument, with the sharding that it has over a mesh like the first one."""
        import jax

        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            return leaf
        sharding = committed_sharding(leaf) if self._settings.in_shardings is None else None
        if sharding is not None:
            # Arrays may lie on any devices, such as those of the mesh that has made them.
            _, mesh = self._first_mesh
            is_alike = dict(sharding.mesh.shape) == dict(mesh.shape)
            sharding = jax.sharding.NamedSharding(mesh, sharding.spec) if is_alike else None
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=_is_weak(leaf))

    @cached_property
    def _first_mesh(self) -> tuple[str, Any]:
        """The name of the first mesh of the topology, and a mesh of JAX like it.

        Raises:
            OptionError: there are too few devices.
        """
        import jax
        import numpy

        name, mesh = read_topology(self._settings.topology).meshes[0]
        devices = numpy.array(choose_devices(mesh.total_size, None, {name: mesh}), dtype=object)
        sizes = {axis.name: axis.size for axis in mesh.axes}
        return name, jax.sharding.Mesh(devices.reshape(tuple(sizes.values())), tuple(sizes))

    def _in_shardings(self) -> Any:
        """Return the shardings of arguments over a mesh of JAX like the first one of the topology.

        Raises:
            OptionError: one is not a spec of this mesh, or there are too few devices.
        """
        import jax
        from jax.sharding import PartitionSpec

        name, jax_mesh = self._first_mesh

        def over_first_mesh(spec: Any) -> Any:
            if not isinstance(spec, PartitionSpec):
                message = f"in_shardings has {shown(spec)}, which is not a PartitionSpec"
                hint = f"give specs over the axes of the first mesh, {name!r}"
                raise OptionError(Diagnostic("invalid-in-shardings", message, hint=hint))
            return over_mesh(spec, jax_mesh)

        return jax.tree_util.tree_map(
            over_first_mesh, self._settings.in_shardings, is_leaf=lambda item: isinstance(item, PartitionSpec)
        )


def _is_weak(leaf: Any) -> bool:
    """Return whether an argument takes the type of what it is combined with, as a number of Python does."""
    return bool(getattr(getattr(leaf, "aval", leaf), "weak_type", not hasattr(leaf, "dtype")))


def _as_jax_reads(value: Any) -> Any:
    """Return an array of numpy with 64 bits an element as JAX reads it: with 32, unless it was told not to."""
    import jax
    import numpy

    if not isinstance(value, (numpy.ndarray, numpy.generic)):
        return value
    return numpy.asarray(value).astype(jax.dtypes.canonicalize_dtype(value.dtype), copy=False)
