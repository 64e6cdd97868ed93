"""Functions of JAX on eight devices: `sdy.jit` against `jax.jit`, in bytes, in time, and against one device.

    python -m benchmarks.jax_functions [NAME...]

Each function of `benchmarks.programs.jax_functions` is run with random shardings of its arguments, in one process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from benchmarks.comparisons import (
    CompiledModule,
    PartitionerComparison,
    counts_what_is_sent,
    largest_deviation,
    print_comparisons,
    seconds_in_turns,
)

if TYPE_CHECKING:
    from benchmarks.programs.jax_functions.case import JaxFunction
    from shardy_py.jax.figures import XlaFigures

DEVICES = 8
TOLERANCE = 5e-3
"""The largest relative deviation from one device: several devices add in another order, most visibly in bfloat16."""


@frozen
class PlacedFunction:
    """A function with arguments on the devices, compiled both ways.

    Args:
        case: The function.
        devices: The devices.
        arguments: Its arguments, distributed.
        ours: It by `sdy.jit`.
        theirs: It as `jax.jit` compiled it.
    """

    case: JaxFunction
    devices: Sequence[Any]
    arguments: Any
    ours: Any
    theirs: Any

    @classmethod
    def of(cls, case: JaxFunction) -> PlacedFunction:
        """Distribute the arguments over the devices of this process, and compile the function."""
        import jax
        import numpy as np
        from jax.sharding import Mesh, NamedSharding

        import shardy_py as sdy
        from benchmarks.programs.jax_functions.case import AXES, is_spec

        devices = jax.devices()[:DEVICES]
        mesh = Mesh(np.array(devices).reshape(*AXES.values()), tuple(AXES))
        shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), case.specs(), is_leaf=is_spec)
        arguments = jax.device_put(case.arguments, shardings)
        theirs = jax.jit(case.function, in_shardings=shardings).lower(*arguments).compile()
        return cls(case, devices, arguments, sdy.jit(case.function, in_shardings=shardings), theirs)

    def sent_bytes(self) -> tuple[float, float]:
        """Return the bytes that one device sends, in our program and in theirs."""
        from shardy_py.jax.figures import measure

        theirs = measure(CompiledModule(self.devices, self.theirs.runtime_executable()))
        return self._figures().communication_bytes, theirs.communication_bytes

    def is_counted(self) -> bool:
        """Return whether the costs of our program count what the compiled one sends."""
        return counts_what_is_sent(self.ours.lower(*self.arguments).cost(), self._figures())

    def _figures(self) -> XlaFigures:
        from shardy_py.jax.figures import measure

        return measure(self.ours.lower(*self.arguments).compile())

    def deviation(self) -> float:
        """Return the largest relative deviation of our results from those of one device."""
        import jax

        expected = jax.jit(self.case.function)(*self.case.arguments)
        return largest_deviation(_arrays(self.ours(*self.arguments)), _arrays(expected))

    def seconds(self) -> Sequence[float]:
        """Return the seconds of a run of ours and of one of theirs."""
        import jax

        return seconds_in_turns(
            lambda: jax.block_until_ready(self.ours(*self.arguments)),
            lambda: jax.block_until_ready(self.theirs(*self.arguments)),
        )


def compare_function(case: JaxFunction) -> PartitionerComparison:
    """Run a function both ways on the devices of this process, and on one of them."""
    placed = PlacedFunction.of(case)
    deviation = placed.deviation()
    (our_bytes, their_bytes), (our_seconds, their_seconds) = placed.sent_bytes(), placed.seconds()
    is_counted = placed.is_counted()
    return PartitionerComparison(case.name, our_bytes, their_bytes, our_seconds, their_seconds, deviation, is_counted)


def _arrays(tree: Any) -> list[Any]:
    import jax
    import numpy as np

    return [np.asarray(item) for item in jax.tree.leaves(tree)]


def compare_all(cases: Sequence[JaxFunction]) -> Iterator[PartitionerComparison | str]:
    """Yield the comparison of each function, or why there is none."""
    import jax

    from shardy_py.errors import ShardyError

    for case in cases:
        try:
            yield compare_function(case)
        except (ShardyError, RuntimeError, ValueError) as error:
            yield f"{case.name:40} {type(error).__name__}: {str(error).splitlines()[0][:100]}"
        jax.clear_caches()


def main(arguments: Sequence[str]) -> int:
    """Print a row per function, and the summary; return 1 if one fails or deviates."""
    from shardy_py.jax.host import use_devices

    use_devices(DEVICES)
    from benchmarks.programs.jax_functions import JAX_FUNCTIONS

    cases = [JAX_FUNCTIONS[name] for name in arguments or JAX_FUNCTIONS]
    comparisons = print_comparisons(compare_all(cases))
    return int(len(comparisons) < len(cases) or any(item.deviation > TOLERANCE for item in comparisons))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
