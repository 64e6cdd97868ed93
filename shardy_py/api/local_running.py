"""A local program on host devices, and beside it the program on one device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from shardy_py.api.result import Result
from shardy_py.api.running import RunReport, make_line
from shardy_py.api.source import read_program
from shardy_py.frontends.select import frontend_of

if TYPE_CHECKING:
    from shardy_py.targets.jax.deviations import Deviation
    from shardy_py.targets.local import LocalProgram


def run_local(
    result: Result,
    local: LocalProgram,
    source: Any = None,
    *,
    inputs: Path | Sequence[Any] | None = None,
    seed: int = 0,
    tolerance: float | None = None,
) -> RunReport:
    """Run a local program on host devices, each in the role of one of its devices.

    Args:
        result: The propagated program.
        local: Its local program.
        source: The program as it was given, to compare with on one device; None for no comparison.
        inputs: The arrays for the arguments, or the ``.npz`` file with them; by default random ones.
        seed: The seed of random inputs.
        tolerance: The largest relative difference of floats; by default it depends on the dtype.

    Raises:
        UnsupportedError: inputs cannot be made up for the program.
        OptionError: the inputs do not fit.
        WorkerError: XLA refuses the program.
    """
    from shardy_py.targets.jax.deviations import compare_results
    from shardy_py.targets.jax.inputs import random_inputs
    from shardy_py.targets.jax.npz import read_inputs
    from shardy_py.targets.jax.unsharded import has_manual_computations
    from shardy_py.targets.local.child import run_whole

    if inputs is None:
        given = random_inputs(result.program, result.main, seed=seed)
    else:
        types = [port.type for port in local.arguments]
        given = read_inputs(inputs, types) if isinstance(inputs, Path) else list(inputs)
    start = perf_counter()
    arrays = local.run(*given)
    seconds = perf_counter() - start
    differences: Sequence[Deviation | None] = [None] * len(arrays)
    notes: tuple[str, ...] = ()
    compared_with = ""
    if source is not None:
        program = read_program(source, result.registry)
        if has_manual_computations(program):
            notes = ("the program has manual computations, which one device cannot run: it is not compared",)
        else:
            native = frontend_of(program).to_mlir(frontend_of(program).write_back(program))
            differences = compare_results(arrays, run_whole(native, given), tolerance=tolerance)
            compared_with = "one device, without shardings"
    lines = [
        make_line(result, number, str(port.type), str(port.sharding or ""), array, difference)
        for number, (port, array, difference) in enumerate(zip(local.results, arrays, differences, strict=True))
    ]
    return RunReport(local.device_count, "cpu", tuple(lines), seconds, compared_with, tuple(arrays), notes)
