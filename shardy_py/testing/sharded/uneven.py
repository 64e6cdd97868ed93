"""Shardings of inputs and outputs that do not divide them: kept, where propagation makes them even."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import field

from shardy_py.ir.graph.callgraph import main_function
from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.finish.input_output_shardings import (
    UpdateNonDivisibleInputOutputShardingsPass,
)
from shardy_py.values import define


@define
class UnevenKept:
    """Called after each pass: gives arguments and results back what the pass for even shardings took from them.

    Virtual devices pad the parts, which a caller with whole arrays does not see.
    """

    _before: dict[int, TensorSharding] = field(factory=dict, init=False)

    def __call__(self, name: str, program: Program) -> None:
        """Keep the shardings, or put those from before the pass in their places."""
        if name == UpdateNonDivisibleInputOutputShardingsPass.name:
            program.shardings.update(self._before)
        self._before = {
            value.id: sharding for value in _ports(program) if (sharding := program.sharding(value)) is not None
        }


def _ports(program: Program) -> Iterator[Value]:
    """Give the arguments and results of the main function."""
    main = main_function(program)
    if main is not None:
        yield from entry_arguments(main)
        yield from main.function_results
