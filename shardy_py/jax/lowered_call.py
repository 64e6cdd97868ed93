"""Functions of `jit` for the shapes of one call: propagated, and compiled once they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve, field

from shardy_py.api.result import Result
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.frontends.mlir import parse_module
from shardy_py.ir.graph.program import Program
from shardy_py.jax.jit_settings import Settings
from shardy_py.jax.modules import bytecode_of, hlo_computation, hlo_text
from shardy_py.jax.result_shardings import divisible_shardings, named_shardings
from shardy_py.values import define

if TYPE_CHECKING:
    from shardy_py.cost.estimates import Cost
    from shardy_py.explain.answer.explanations import ValueExplanation
    from shardy_py.jax.callable.device_program import DeviceProgram
    from shardy_py.jax.compiled import CompiledModule


@define(eq=False)
class LoweredCall:
    """A function for the shapes of one call: propagated, and compiled once it is asked for.

    Args:
        lowered: What JAX made of the function.
        result: The propagated program.
        settings: The arguments of `jit`.
        devices: The devices that it runs on; the first ones of ``jax.devices()`` by default.
    """

    lowered: Any = field(repr=False)
    result: Result
    settings: Settings = field(repr=False)
    devices: list[Any] | None
    _compiled: dict[Any, DeviceProgram | CompiledModule] = field(factory=dict, init=False, repr=False)

    def compile(
        self,
        compiler_options: Mapping[str, Any] | None = None,
        *,
        device_assignment: Sequence[Any] | None = None,
    ) -> DeviceProgram | CompiledModule:
        """Return the program for the devices of JAX; it takes and returns the trees of the function.

        Args:
            compiler_options: Options of XLA, beside those that `jit` was given.
            device_assignment: The devices, by the numbers of the mesh; those of the call by default.

        Raises:
            ShardyError: it cannot run, or there are too few devices.
        """
        options = {**self.settings.compiler_options, **(compiler_options or {})}
        devices = self.devices if device_assignment is None else list(device_assignment)
        key = tuple(sorted(options.items())), None if devices is None else tuple(devices)
        if key not in self._compiled:
            partitioner = self.settings.partitioner
            compiled = self.result.to_jax(devices, partitioner=partitioner, compiler_options=options)
            signature = None if compiled.signature is None else evolve(compiled.signature, returns_trees=True)
            self._compiled[key] = evolve(compiled, signature=signature)
        return self._compiled[key]

    @property
    def in_tree(self) -> Any:
        """The tree of the positional arguments and those by keyword."""
        return self.lowered.in_tree

    @property
    def out_tree(self) -> Any:
        """The tree of the results."""
        return self.lowered.out_tree

    @property
    def args_info(self) -> Any:
        """A `jax.stages.ArgInfo` for each argument, in their tree: its type, and whether it is donated."""
        return self.lowered.args_info

    @property
    def in_avals(self) -> Any:
        """The type of each argument, in their tree."""
        return self.lowered.in_avals

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The numbers of the donated arguments, counted along the leaves of their tree."""
        numbers: tuple[int, ...] = self.lowered.donate_argnums
        return numbers

    @property
    def out_info(self) -> Any:
        """A `jax.ShapeDtypeStruct` for each result, in their tree, with the propagated sharding.

        It is over the devices of the call, or over an abstract mesh where JAX has too few of them.
        """
        import jax

        types = jax.tree.leaves(self.lowered.out_info)
        pairs = zip(types, named_shardings(self.result, self.devices, of_results=True), strict=True)
        shapes = [jax.ShapeDtypeStruct(type_.shape, type_.dtype, sharding=sharding) for type_, sharding in pairs]
        return self.out_tree.unflatten(shapes)

    def jit_shardings(self) -> dict[str, Any]:
        """Return the options of `jax.jit` with the shardings of arguments and results, as far as it takes them.

        It takes none of arguments by keyword, and none that do not divide a size.
        """
        signature = self.result.signature
        if signature is None or not has_axes(self.result.program):
            return {}
        results = divisible_shardings(self.result, self.devices, of_results=True)
        options = {"out_shardings": self.out_tree.unflatten(results)}
        positional, keywords = self.in_tree.children()
        if not keywords.num_leaves:
            arguments: list[Any] = [None] * self.in_tree.num_leaves
            for number, sharding in zip(
                signature.used, divisible_shardings(self.result, self.devices, of_results=False), strict=True
            ):
                arguments[number] = sharding
            options["in_shardings"] = positional.unflatten(arguments)
        return options

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Return the propagated module as text.

        Args:
            dialect: ``stablehlo``, which is the default, or ``hlo``.
            debug_info: Whether the text has the locations of ops.

        Raises:
            OptionError: it is another dialect.
        """
        if self._is_hlo(dialect):
            return hlo_text(self.compiler_ir("hlo"), debug_info=debug_info)
        if not debug_info:
            return self.result.text
        text: str = self.compiler_ir().operation.get_asm(enable_debug_info=True)
        return text

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """Return the propagated module: a `jaxlib.mlir.ir.Module`, or its form for XLA in HLO.

        Args:
            dialect: ``stablehlo``, which is the default, or ``hlo``.

        Raises:
            OptionError: it is another dialect.
        """
        if self._is_hlo(dialect):
            # HLO has no reshards. It is only read, so that faults of XLA's partitioner do not matter.
            return hlo_computation(self.result.for_xla(warnings=[]))
        return parse_module(bytecode_of(self.result.module))

    def cost_analysis(self) -> Any:
        """Return what XLA's own model of costs says of the function before it is partitioned, as `jax.jit` does.

        It is for all devices together; `cost` prices what one device runs.
        """
        return self.lowered.cost_analysis()

    def _is_hlo(self, dialect: str | None) -> bool:
        if dialect not in (None, "stablehlo", "hlo"):
            message = f"{dialect!r} is not a dialect that a lowered function can be shown in"
            raise OptionError(Diagnostic("unknown-dialect", message, hint="give 'stablehlo' or 'hlo'"))
        return dialect == "hlo"

    def cost(self, machine: Any = None, **options: Any) -> Cost:
        """Return what the program costs on one device; see `Result.cost`.

        Args:
            machine: A machine, the name of one that comes along, or a TOML file; without one there are no times.
            options: More options of `Result.cost`; the partitioner is that of the function, and the profile without a
                machine that of XLA for its devices.

        Raises:
            ShardyError: an option is not valid.
        """
        defaults: dict[str, Any] = {"partitioner": self.settings.partitioner}
        if machine is None:
            defaults["profile"] = _profile_of(self.devices)
        return self.result.cost(machine, **{**defaults, **options})

    def explain(self, value: Any, dim: int | None = None) -> ValueExplanation:
        """Return why a value is sharded as it is; see `Result.explain`.

        Args:
            value: The value, by the name of an argument or a result, or of an op.
            dim: The dimension; None for all.

        Raises:
            OptionError: there is no such value.
        """
        return self.settings.propagate(self.lowered, trace=True).explain(value, dim)


def has_axes(program: Program) -> bool:
    """Return whether a program has a mesh with axes; without one it is for one device."""
    return any(mesh.axes for mesh in program.meshes.values())


def _profile_of(devices: Sequence[Any] | None) -> str | None:
    """Return the name of the profile of XLA for devices, those of JAX by default; None where there is none."""
    import jax

    (first, *_) = jax.devices() if devices is None else devices
    return {"cpu": "xla-cpu", "gpu": "xla-gpu"}.get(first.platform)
