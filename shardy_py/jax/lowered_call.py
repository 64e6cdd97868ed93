"""Functions of `jit` for the shapes of one call: propagated, and compiled once they are asked for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve, field

from shardy_py.api.propagate import propagate
from shardy_py.api.result import Result
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.frontends.mlir import parse_module
from shardy_py.ir.graph.program import Program
from shardy_py.jax.modules import bytecode_of, hlo_computation, hlo_text
from shardy_py.jax.result_shardings import divisible_shardings, named_shardings
from shardy_py.jax.sharding_trees import has_names, is_prefix, shardings_of_leaves
from shardy_py.values import define, frozen

if TYPE_CHECKING:
    from shardy_py.cost.estimates import Cost
    from shardy_py.explain.answer.explanations import ValueExplanation
    from shardy_py.jax.callable.device_program import DeviceProgram
    from shardy_py.jax.compiled import CompiledModule
    from shardy_py.jax.result_methods import Partitioner


_BY_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, _BY_EITHER)


@frozen(eq=False)
class Settings:
    """Arguments of `jit` besides the function, with the same names."""

    mesh: Any
    in_shardings: Any
    out_shardings: Any
    schedule: Any
    donate: tuple[int, ...]
    donate_names: tuple[str, ...]
    static_numbers: tuple[int, ...]
    static_names: tuple[str, ...]
    keep_unused: bool
    inline: bool
    device: Any
    backend: str | None
    compiler_options: Mapping[str, Any]
    partitioner: Partitioner
    options: Mapping[str, Any]

    def __attrs_post_init__(self) -> None:
        if self.inline and self.partitioner == "shardy_py":
            message = "inline=True makes a function part of the jaxpr around it, where it is not propagated any more"
            raise OptionError(
                Diagnostic("option-conflict", message, hint="leave inline out, or give partitioner='xla'")
            )
        name = "device" if self.device is not None else "backend"
        beside = ("mesh", "in_shardings", "out_shardings")
        other = next((item for item in beside if getattr(self, item) is not None), None)
        if self.is_on_one_device and other is not None:
            message = f"{name} is for a function on one device, and {other} distributes it"
            hint = f"leave {name} out: a mesh of JAX has its devices, as jax.make_mesh(..., devices=jax.devices('cpu'))"
            raise OptionError(Diagnostic("option-conflict", message, hint=hint))

    @property
    def is_on_one_device(self) -> bool:
        """True if the function is for one device, which JAX is told."""
        return self.device is not None or self.backend is not None

    def for_function(self, function: Callable[..., Any]) -> Settings:
        """Return the settings with the static arguments of a function by number and by name, if either was given."""
        numbers, names = static_arguments(function, self.static_numbers, self.static_names)
        return evolve(self, static_numbers=numbers, static_names=names)

    def of_arguments(self) -> dict[str, Any]:
        """Return the options of `jax.jit` that say which arguments are static, donated or kept, and on which device."""
        place = {"device": self.device, "backend": self.backend} if self.is_on_one_device else {}
        return {
            **place,
            "donate_argnums": self.donate or None,
            "donate_argnames": self.donate_names or None,
            "static_argnums": self.static_numbers or None,
            "static_argnames": self.static_names or None,
            "keep_unused": self.keep_unused,
        }

    def given_out_shardings(self, out_tree: Any) -> list[Any]:
        """Return the sharding that is given for each result; None for those that propagation decides.

        Args:
            out_tree: The tree of the results.
        """
        count, given = out_tree.num_leaves, self.out_shardings
        if given is None:
            return [None] * count
        if isinstance(given, Mapping) and not is_prefix(given, out_tree):
            # By number or by name.
            return [given.get(number) for number in range(count)]
        return [given] * count if has_names(given) else shardings_of_leaves(given, out_tree, "out_shardings")

    def propagate(self, lowered: Any, **more: Any) -> Result:
        """Return the propagated program of a call."""
        return propagate(
            lowered,
            self.mesh,
            in_shardings=self.in_shardings,
            out_shardings=self.out_shardings,
            schedule=self.schedule,
            **{**self.options, **more},
        )


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
        """Return the propagated module: a `jaxlib.mlir.ir.Module`, or XLA's own in HLO.

        Args:
            dialect: ``stablehlo``, which is the default, or ``hlo``.

        Raises:
            OptionError: it is another dialect.
        """
        module = parse_module(bytecode_of(self.result.module))
        return hlo_computation(module) if self._is_hlo(dialect) else module

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


def static_arguments(
    function: Callable[..., Any], numbers: tuple[int, ...], names: tuple[str, ...]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the static arguments of a function by number and by name, where one of both is given; as `jax.jit` does.

    Args:
        function: The function.
        numbers: The numbers of positional arguments.
        names: The names of arguments by keyword.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return numbers, names
    is_variadic = any(item.kind is inspect.Parameter.VAR_POSITIONAL for item in parameters)
    by_position = [item for item in parameters if item.kind in _BY_POSITION]
    if not is_variadic:
        numbers = tuple(number + len(by_position) if number < 0 else number for number in numbers)
    either = [(number, item.name) for number, item in enumerate(by_position) if item.kind is _BY_EITHER]
    if numbers and not names:
        names = tuple(name for number, name in either if number in numbers)
    elif names and not numbers:
        numbers = tuple(number for number, name in either if name in names)
    return numbers, names
