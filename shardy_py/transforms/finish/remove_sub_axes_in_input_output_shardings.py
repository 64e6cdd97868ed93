"""Remove sub-axes from the shardings of inputs and outputs.

Mirrors remove_sub_axes_in_input_output_shardings.cc::RemoveSubAxesInInputOutputShardingsPass.
"""

from __future__ import annotations

from itertools import takewhile
from typing import ClassVar

from attrs import evolve

from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.tensor import DimensionSharding
from shardy_py.values import NoFields


class RemoveSubAxesInInputOutputShardingsPass(NoFields):
    """Cut the open dimensions of the main function's arguments and results before their first sub-axis.

    It comes after dimensions were made to divide evenly, which a prefix leaves true. Closed dimensions are what the
    user wanted.
    """

    name: ClassVar[str] = "sdy-remove-sub-axes-in-input-output-shardings"

    def run(self, program: Program, context: PassContext) -> None:
        """Cut the shardings of the main function.

        Raises:
            UnsupportedError: several functions, none of them ``main``.
        """
        main = main_function(program)
        if main is None:
            return
        table = program.shardings
        arguments = [value for region in main.regions for block in region.blocks[:1] for value in block.arguments]
        for value in [*arguments, *main.function_results]:
            sharding = table.get(value.id)
            if sharding is not None:
                table[value.id] = sharding.map_dims(whole_axes)


def whole_axes(dim: DimensionSharding) -> DimensionSharding:
    """Return an open dimension without its first sub-axis and what follows it; a closed one stays as it is."""
    if dim.is_closed or not any(axis.sub_axis for axis in dim.axes):
        return dim
    return evolve(dim, axes=tuple(takewhile(lambda axis: axis.sub_axis is None, dim.axes)))
