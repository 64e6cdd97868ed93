"""A local program as a function of JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import evolve, field

from shardy_py.jax.arguments import ArrayType, as_traced, check_array, is_placed, place
from shardy_py.jax.callable.body import LocalBody, make_body
from shardy_py.jax.callable.boundary import Boundary, has_view
from shardy_py.jax.callable.compilation import CompiledBody, compile_on, refuse_traced_options
from shardy_py.jax.callable.meshes import (
    Copies,
    copies_in_context,
    copies_in_order,
    find_mesh,
    free_axes,
    is_explicit,
    mesh_over,
    sharding_over,
)
from shardy_py.jax.callable.placement import PortPlacement, ProgramPlacement
from shardy_py.jax.callable.primitive import call_body
from shardy_py.jax.callable.trees import call_with_trees, check_argument_count
from shardy_py.jax.callable.views import as_view, from_view, view_sharding
from shardy_py.jax.compiled_stage import CompiledStage
from shardy_py.jax.local.local_program import LocalProgram
from shardy_py.jax.signature import JaxSignature
from shardy_py.values import define


@define(eq=False, slots=False)
class DeviceProgram(CompiledStage):
    """A propagated program for the devices of JAX: call it, also under `jax.jit` and in loops of JAX.

    Each device runs its local program; no partitioner of XLA decides anything.

    Attributes:
        local: The local program.
        placement: Where the shards of its arguments and results lie.
        devices: The devices, by the numbers that the meshes of the program give them.
        mesh: The mesh of JAX that results are over, unless arguments are over an equal one.
        donated: The numbers of the arguments whose memory the results may take.
        in_memories: The memory that each argument lies in; None for that of the device.
        out_memories: The memory that each result lies in.
        is_ordered: Whether it has effects that happen in the order of the caller's.
        signature: The trees of arguments and results of a function of JAX; None for other programs.
        compiler_options: Options of XLA for the program.
    """

    local: LocalProgram
    placement: ProgramPlacement
    devices: tuple[Any, ...]
    mesh: Any
    donated: frozenset[int]
    in_memories: tuple[str | None, ...]
    out_memories: tuple[str | None, ...]
    is_ordered: bool = False
    signature: JaxSignature | None = None
    compiler_options: Mapping[str, Any] = field(factory=dict)
    _compiled: dict[Any, Any] = field(factory=dict, init=False, repr=False)
    _bodies: dict[Any, LocalBody] = field(factory=dict, init=False, repr=False)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run it.

        Args:
            arguments: The arguments of the function of JAX, in its trees; or one array per argument of the main
                function. Arrays have the global shapes (numpy or JAX); they are distributed as the program says. A
                donated argument that is distributed like that already is gone afterwards, as with `jax.jit`.
            keywords: The arguments of the function by keyword.

        Returns:
            One distributed JAX array of the global shape per result: in the tree of the function that was called with
            its own trees, unless that is one array or a flat tuple or list; else in a list.

        Raises:
            OptionError: not one array per argument, or one of another shape or dtype.
            UnsupportedError: XLA refuses the program.
        """
        return call_with_trees(self, arguments, keywords)

    def run(self, *arguments: Any) -> list[Any]:
        """Run it with one array per argument of the main function, and return one per result.

        Args:
            arguments: The arrays, or values that JAX traces.

        Raises:
            OptionError: not one array per argument, or one of another shape or dtype.
            UnsupportedError: XLA refuses the program.
        """
        import jax

        check_argument_count(len(arguments), len(self.in_types))
        if any(isinstance(value, jax.core.Tracer) for value in arguments):
            return self._trace(arguments)
        mesh = find_mesh(self.mesh, arguments)
        compiled = self._compile(mesh)
        pairs = zip(arguments, compiled.in_shardings, strict=True)
        if all(isinstance(value, jax.Array) and value.sharding == sharding for value, sharding in pairs):
            placed = [
                check_array(*item, number) for number, item in enumerate(zip(arguments, self.in_types, strict=True))
            ]
        else:
            placed = self._place(arguments, compiled.in_shardings)
        if not self._has_views:
            return list(compiled(*placed))
        views = [_viewed(item, array, mesh) for item, array in zip(self.placement.arguments, placed, strict=True)]
        return [
            from_view(array, item.port.type.shape, sharding) if has_view(item) else array
            for item, array, sharding in zip(
                self.placement.results, compiled(*views), compiled.out_shardings, strict=True
            )
        ]

    def compiled_for(self, arguments: Sequence[Any]) -> CompiledBody | None:
        """Return what is compiled for arrays that lie as it wants them, and for numbers; None for any others.

        Args:
            arguments: One per argument of the main function.

        Raises:
            UnsupportedError: XLA refuses the program.
        """
        if self._has_views:
            return None
        compiled = self._compile(find_mesh(self.mesh, arguments))
        triples = zip(arguments, self.in_types, compiled.in_shardings, strict=True)
        fits = all(is_placed(*item) for item in triples)
        # What is donated and moved is copied first, as its memory would be shared.
        donated = (arguments[number] for number in self.donated)
        return compiled if fits and all(getattr(value, "committed", False) for value in donated) else None

    @cached_property
    def _has_views(self) -> bool:
        return any(map(has_view, (*self.placement.arguments, *self.placement.results)))

    def _place(self, arguments: Sequence[Any], shardings: Sequence[Any]) -> list[Any]:
        """Return arguments as arrays that lie as a compiled program wants them."""
        import jax

        # Without it JAX turns 64-bit arrays into 32-bit ones on the way.
        with jax.enable_x64(True):
            return [
                place(number, value, type_, sharding, is_donated=number in self.donated)
                for number, (value, type_, sharding) in enumerate(zip(arguments, self.in_types, shardings, strict=True))
            ]

    @cached_property
    def in_types(self) -> tuple[ArrayType, ...]:
        """The global shape and the dtype of every argument."""
        return tuple(port.type for port in self.local.arguments)

    @cached_property
    def out_types(self) -> tuple[ArrayType, ...]:
        """The global shape and the dtype of every result."""
        return tuple(port.type for port in self.local.results)

    @cached_property
    def in_shardings(self) -> tuple[Any, ...]:
        """The `jax.sharding.NamedSharding` of every argument."""
        return self._shardings(self.mesh, self.placement.arguments, self.in_memories)

    @cached_property
    def out_shardings(self) -> tuple[Any, ...]:
        """The `jax.sharding.NamedSharding` of every result."""
        return self._shardings(self.mesh, self.placement.results, self.out_memories)

    @property
    def executable(self) -> Any:
        """XLA's loaded executable; ``executable.hlo_modules()`` is what XLA made of the program."""
        return self._compile(self.mesh).executable

    def hlo(self) -> str:
        """Return the text of the compiled program, with its collectives.

        Raises:
            UnsupportedError: XLA refuses the program.
        """
        text: str = self.executable.hlo_modules()[0].to_string()
        return text

    def _shardings(
        self, mesh: Any, placements: Sequence[PortPlacement], memories: Sequence[str | None]
    ) -> tuple[Any, ...]:
        pairs = zip(placements, memories, strict=True)
        return tuple(sharding_over(mesh, self.placement, item, self.devices, memory) for item, memory in pairs)

    def _compile(self, mesh: Any) -> CompiledBody:
        """Return the program compiled over a mesh of JAX.

        Raises:
            UnsupportedError: XLA refuses it.
        """
        if mesh not in self._compiled:
            inner = mesh_over(self.placement, mesh)
            boundary = Boundary(self.placement, inner, inner.axis_names, is_explicit(inner), has_views=True)
            ins = self._shardings(mesh, self.placement.arguments, self.in_memories)
            outs = self._shardings(mesh, self.placement.results, self.out_memories)
            compiled = compile_on(
                boundary,
                self._body(copies_in_order(self.placement)),
                in_shardings=_as_views(self.placement.arguments, ins, mesh),
                out_shardings=_as_views(self.placement.results, outs, mesh),
                donated=self.donated,
                compiler_options=self.compiler_options,
            )
            self._compiled[mesh] = evolve(compiled, in_shardings=ins, out_shardings=outs)
        return self._compiled[mesh]

    def _trace(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the results while JAX traces.

        Raises:
            OptionError: an argument has another shape or dtype.
            UnsupportedError: the context has another mesh, or the program has options of XLA.
        """
        import jax

        refuse_traced_options(self.compiler_options)
        pairs = zip(arguments, self.in_types, strict=True)
        arrays = [as_traced(value, type_, number) for number, (value, type_) in enumerate(pairs)]
        context = jax.sharding.get_abstract_mesh()
        is_known = not context.empty and (context.manual_axes or not self.placement.is_cut)
        if is_known and self._has_axes(context):
            axes = free_axes(self.placement, context)
            boundary = Boundary(self.placement, None, axes, is_explicit(context))
            copies = copies_in_context(self.placement, context)
        else:
            mesh = mesh_over(self.placement, self.mesh)
            boundary = Boundary(self.placement, mesh, mesh.axis_names, is_explicit(mesh))
            copies = copies_in_order(self.placement)
        return boundary.call(lambda shards: call_body(self._body(copies), shards), arrays)

    def _has_axes(self, context: Any) -> bool:
        """Return whether a program is called where its axes, or those of a ``shard_map``, are those of the context."""
        sizes = dict(zip(context.axis_names, context.axis_sizes, strict=True))
        return bool(context.manual_axes) or all(sizes.get(name, 1) == size for name, size in self.placement.axes)

    def _body(self, copies: Copies) -> LocalBody:
        if copies not in self._bodies:
            body = make_body(self.local, copies, is_ordered=self.is_ordered)
            if self.signature is not None:
                body = evolve(body, host_callbacks=self.signature.host_callbacks, keepalive=self.signature.alive)
            self._bodies[copies] = body
        return self._bodies[copies]


def _viewed(placement: PortPlacement, array: Any, mesh: Any) -> Any:
    return as_view(array, mesh) if has_view(placement) else array


def _as_views(placements: Sequence[PortPlacement], shardings: Sequence[Any], mesh: Any) -> list[Any]:
    """Return the shardings of what a compiled program takes or gives."""
    pairs = zip(placements, shardings, strict=True)
    return [view_sharding(mesh) if has_view(item) else sharding for item, sharding in pairs]
