"""Functions of JAX on eight devices: `sdy.jit` against `jax.jit`, in bytes, in time, and against one device.

    python -m benchmarks.jax_functions [NAME...]

Each function of `benchmarks.programs.jax_functions` is run with random shardings of its arguments, in one process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.comparisons import CompiledModule, PartitionerComparison, print_comparisons, seconds_in_turns

if TYPE_CHECKING:
    from benchmarks.programs.jax_functions.case import JaxFunction

DEVICES = 8


def compare_function(case: JaxFunction) -> PartitionerComparison:
    """Run a function both ways on the devices of this process, and on one of them."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    import shardy_py as sdy
    from benchmarks.programs.jax_functions.case import AXES
    from shardy_py.jax.deviations import compare_results
    from shardy_py.jax.figures import measure

    devices = jax.devices()[:DEVICES]
    mesh = Mesh(np.array(devices).reshape(*AXES.values()), tuple(AXES))
    shardings = jax.tree.map(
        lambda spec: NamedSharding(mesh, spec), case.specs(), is_leaf=lambda item: isinstance(item, PartitionSpec)
    )
    expected = jax.jit(case.function)(*case.arguments)
    arguments = jax.device_put(case.arguments, shardings)
    ours = sdy.jit(case.function, in_shardings=shardings)
    theirs = jax.jit(case.function, in_shardings=shardings)
    results = ours(*arguments)
    deviations = compare_results(_arrays(results), _arrays(expected))
    theirs(*arguments)
    seconds = seconds_in_turns(
        lambda: jax.block_until_ready(ours(*arguments)), lambda: jax.block_until_ready(theirs(*arguments))
    )
    executable = theirs.lower(*arguments).compile().runtime_executable()
    return PartitionerComparison(
        case.name,
        measure(ours.lower(*arguments).compile()).communication_bytes,
        measure(CompiledModule(devices, executable)).communication_bytes,
        *seconds,
        max((item.relative if item.nans == 0 else float("inf") for item in deviations), default=0.0),
    )


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


TOLERANCE = 2e-3
"""The largest relative deviation from one device: several devices add in another order."""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
