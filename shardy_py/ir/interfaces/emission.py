"""The interfaces of kernels: the builder of scalar bodies, emitters, and passes over modules of kernels.

Values are those of the kernel, in the types that memory has: booleans are ``i8``, integers have no sign, the other
types are those of the tensors. Indices have type ``index``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from shardy_py.ir.graph.program import Op

if TYPE_CHECKING:
    from shardy_py.indexing import IndexingMap


class Scalar(Protocol):
    """A value that is computed for one element."""

    @property
    def dtype(self) -> str:
        """Its type in MLIR's notation: ``f32``, ``i8``, ``index``."""
        ...


class ElementBuilder(Protocol):
    """Builds the ops that compute one element of an op's results."""

    @property
    def indices(self) -> Sequence[Scalar]:
        """The index of the element."""
        ...

    @property
    def maps(self) -> Sequence[IndexingMap]:
        """The indexing map of every operand, from the index of the element; none where they are not known."""
        ...

    def operand(self, number: int, indices: Sequence[Scalar] | None = None) -> Scalar:
        """Return an element of an operand; by default the one of the op's indexing map."""
        ...

    def op(self, name: str, *operands: Scalar, dtype: str | None = None, **attributes: Any) -> Scalar:
        """Add an op of ``arith``, ``math`` or ``complex`` by its MLIR name.

        Args:
            name: The full name, such as ``arith.addf``.
            operands: The operands.
            dtype: The type of the result; by default that of the first operand.
            attributes: Attributes: ``predicate="slt"`` for comparisons.
        """
        ...

    def constant(self, value: complex, dtype: str) -> Scalar:
        """Return a constant, rounded to its type."""
        ...

    def literal(self, op: Op) -> Scalar:
        """Return the element of a constant that the op holds."""
        ...

    def apply(self, map_: IndexingMap, indices: Sequence[Scalar], symbols: Sequence[Scalar] = ()) -> list[Scalar]:
        """Return the results of an indexing map."""
        ...

    def inside(self, map_: IndexingMap, indices: Sequence[Scalar]) -> Scalar:
        """Return whether indices are in the domain of a map, as an ``i1``."""
        ...

    def choose(self, condition: Scalar, then: Callable[[], Scalar], otherwise: Callable[[], Scalar]) -> Scalar:
        """Return the value of one of two branches; the other branch is not computed.

        Args:
            condition: An ``i1``.
            then: Builds the value where it holds.
            otherwise: Builds the value where it does not.
        """
        ...

    def reduce(
        self,
        map_: IndexingMap,
        initial: Sequence[Scalar],
        body: Callable[[Sequence[Scalar], Sequence[Scalar]], Sequence[Scalar]],
        indices: Sequence[Scalar] | None = None,
    ) -> list[Scalar]:
        """Return values that a loop carries over all symbols of a map for which its constraints hold.

        Args:
            map_: The map.
            initial: The values before the loop.
            body: Takes the results of the map and the carried values; returns the next ones.
            indices: The dimensions of the map; by default the index of the element.
        """
        ...

    def repeat(
        self, count: int, initial: Sequence[Scalar], body: Callable[[Sequence[Scalar]], Sequence[Scalar]]
    ) -> list[Scalar]:
        """Return values that a loop carries a number of times."""
        ...

    def call(self, op: Op, arguments: Sequence[Scalar], region: int = 0) -> list[Scalar]:
        """Return the results of a region of an op, by default the first, for scalar arguments."""
        ...


Emission = Callable[[ElementBuilder, Op], "Scalar | Sequence[Scalar]"]
"""Builds one element of each result of an op."""


class KernelEmitter(Protocol):
    """Emits the kernels of the fusions that it accepts."""

    @property
    def name(self) -> str:
        """The name, for lists and reasons."""
        ...

    def accepts(self, fusion: Any) -> str:
        """Return why the emitter takes a fusion (`shardy_py.kernels.Fusion`), or "" where it does not."""
        ...

    def launch(self, fusion: Any, device: Any) -> Any:
        """Return the blocks and threads of a fusion: a `shardy_py.kernels.Launch`.

        Args:
            fusion: The fusion.
            device: The device, a `shardy_py.kernels.DeviceSpec`.
        """
        ...

    def entry(self, functions: Any, launch: Any) -> Any:
        """Return the entry function, an op ``func.func`` of xDSL.

        Args:
            functions: The functions of the fusion, which compute its elements: a ``FunctionEmitter``.
            launch: What `launch` returned.
        """
        ...


class KernelModulePass(Protocol):
    """A pass over the modules of kernels; its class takes no arguments.

    Attributes:
        name: The name, as ``--stage`` takes it.
        of_kernels: True, which tells it from passes over programs.
        runs_before: The name of the pass before whose first run it runs; or it has ``runs_after``, and runs after the
            last run of that one.
    """

    name: ClassVar[str]
    of_kernels: ClassVar[bool]

    def run(self, module: Any, context: Any) -> None:
        """Rewrite a module of xDSL in place.

        Args:
            module: The module.
            context: What else is known, such as ``context.device``.
        """
        ...
