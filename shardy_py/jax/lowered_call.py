"""Functions of `jit` for the shapes of one call: propagated, and compiled once they are asked for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve, field

from shardy_py.api.propagate import propagate
from shardy_py.api.result import Result
from shardy_py.ir.graph.program import Program
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
    partitioner: Partitioner
    options: Mapping[str, Any]

    def for_function(self, function: Callable[..., Any]) -> Settings:
        """Return the settings with the static arguments of a function by number and by name, if either was given."""
        numbers, names = static_arguments(function, self.static_numbers, self.static_names)
        return evolve(self, static_numbers=numbers, static_names=names)

    def of_arguments(self) -> dict[str, Any]:
        """Return the options of `jax.jit` that say which arguments are static, donated or kept."""
        return {
            "donate_argnums": self.donate or None,
            "donate_argnames": self.donate_names or None,
            "static_argnums": self.static_numbers or None,
            "static_argnames": self.static_names or None,
            "keep_unused": self.keep_unused,
        }

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
    _compiled: DeviceProgram | CompiledModule | None = field(default=None, init=False, repr=False)

    def compile(self) -> DeviceProgram | CompiledModule:
        """Return the program for the devices of JAX; it takes and returns the trees of the function.

        Raises:
            ShardyError: it cannot run, or there are too few devices.
        """
        if self._compiled is None:
            compiled = self.result.to_jax(self.devices, partitioner=self.settings.partitioner)
            signature = None if compiled.signature is None else evolve(compiled.signature, returns_trees=True)
            self._compiled = evolve(compiled, signature=signature)
        return self._compiled

    def as_text(self) -> str:
        """Return the propagated module as MLIR text."""
        return self.result.text

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
