"""One op with what it computes, and what the numeric check is known to find about its rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen

from shardy_py.ir.graph.types import tensor

Frozen = Mapping[str, str]


@frozen(eq=False)
class Case:
    """One op.

    Args:
        name: The op; a short name belongs to ``stablehlo``, ``TARGET@`` stands for a custom call.
        operands: Shapes, types or arrays.
        function: What it computes.
        results: Shapes of the results, where the function has to know them.
        attributes: The attributes.
        combine: How shards of a reduction combine.
        wrong: Factors whose claim the check finds wrong, with the reason why the rule has them.
        missing: Places where the check finds a factor that the rule does not have, with the reason.
        build: Makes the op, where it has regions or neighbours.
    """

    name: str
    operands: list[Any]
    function: Callable[..., Any]
    results: list[Any] | None = None
    attributes: Mapping[str, Any] = field(factory=dict)
    combine: Callable[[Any, Any], Any] | None = None
    wrong: Frozen = field(factory=dict)
    missing: Frozen = field(factory=dict)
    build: Callable[[], Any] | None = None

    @property
    def op(self) -> str:
        """The full name of the op."""
        if self.name.endswith("@"):
            return "stablehlo.custom_call"
        return self.name if "." in self.name else f"stablehlo.{self.name}"

    @property
    def all_attributes(self) -> Mapping[str, Any]:
        """The attributes, with the target of a custom call."""
        target = {"call_target_name": self.name[:-1]} if self.name.endswith("@") else {}
        return {**self.attributes, **target}


def integers(*shape: int, dtype: str = "i32") -> Any:
    """A type of integers."""
    return tensor(*shape, dtype=dtype)


def booleans(*shape: int) -> Any:
    """A type of booleans."""
    return tensor(*shape, dtype="i1")


def complexes(*shape: int) -> Any:
    """A type of complex numbers."""
    return tensor(*shape, dtype="complex<f32>")
