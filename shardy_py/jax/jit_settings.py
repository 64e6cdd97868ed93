"""Arguments of `jit`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from shardy_py.api.propagate import propagate
from shardy_py.api.result import Result
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.jax.sharding_trees import has_names, is_prefix, shardings_of_leaves
from shardy_py.values import frozen

if TYPE_CHECKING:
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
