"""A propagated program on virtual devices, by the functions of its plugins: what ``shardy run`` does with own ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from attrs import evolve

from shardy_py.api.options import LocalOptions
from shardy_py.api.result import Result
from shardy_py.errors import Diagnostic, PluginError, ShardyError
from shardy_py.guards.error_texts import describe_error, location_in_trace
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.run_report import RunReport, result_lines
from shardy_py.jax.running_inputs import given_arrays
from shardy_py.local.explicit import explicit_passes
from shardy_py.local.pipeline import local_passes
from shardy_py.testing.numeric.bench import Arrays
from shardy_py.testing.sharded.devices import VirtualDevices
from shardy_py.testing.sharded.interpreter import Functions, Interpreter, check_program
from shardy_py.testing.sharded.virtual_ops import SPACE, VirtualOps
from shardy_py.transforms.run import run


def run_functions(
    result: Result,
    functions: Functions,
    *,
    inputs: Path | Sequence[Any] | None,
    seed: int,
    compare: bool,
    tolerance: float | None,
) -> RunReport:
    """Run the local program of a propagated program on virtual devices of numpy.

    Args:
        result: The propagated program.
        functions: The function of each op name, as for `run_sharded`.
        inputs: The arrays for the arguments, or the ``.npz`` file with them; None for random ones.
        seed: The seed of random inputs.
        compare: Whether to run the program on whole tensors, too.
        tolerance: The largest relative difference of floats; by default it depends on the dtype.

    Raises:
        OptionError: an op has no function, a function gives other shapes than its op has, or the inputs do not fit.
        PluginError: a function raises an exception.
        ShardyError: there is no local program.
    """
    main = str(result.main.attributes["sym_name"])
    local = copy_program(result.program)
    check_program(local, functions, result.registry)
    arrays = given_arrays(result, [value.type for value in entry_arguments(result.main)], inputs, seed=seed)
    context = PassContext(evolve(result.registry, local_ops={SPACE: VirtualOps()}))
    run(local, (*explicit_passes(), *local_passes(LocalOptions())), context)
    devices = VirtualDevices(local, functions, result.registry, main)
    start = perf_counter()
    results = _run(devices.interpreters, functions, lambda: devices.run(arrays))
    seconds = perf_counter() - start
    expected = None
    if compare:
        interpreter = Interpreter(copy_program(result.program), functions, result.registry)
        expected = _run([interpreter], functions, lambda: interpreter.run(main, arrays))
    values = result.main.function_results
    sizes = [tuple(map(slice, static_shape(value.type) or ())) for value in values]
    unpadded = tuple(array[part] for array, part in zip(results, sizes, strict=True))
    shown = [(str(value.type), str(result.program.sharding(value) or "")) for value in values]
    lines = result_lines(result, shown, unpadded, expected, tolerance=tolerance)
    compared_with = "one device, without shardings" if compare else ""
    return RunReport(devices.count, "numpy", lines, seconds, compared_with, unpadded)


def _run(interpreters: Sequence[Interpreter], functions: Functions, run: Callable[[], Arrays]) -> Arrays:
    """Return what a run gives.

    Raises:
        PluginError: a function raises an exception.
    """
    try:
        return run()
    except (ShardyError, MemoryError):
        raise
    except Exception as error:
        op = next((item.failed for item in interpreters if item.failed is not None), None)
        if op is None:
            raise
        line = location_in_trace(error, functions[op.name])
        message = f"its function raises {describe_error(error)}"
        hint = f"the exception is from {line}" if line else ""
        raise PluginError(Diagnostic("function-failed", message, op.location, op.name, hint)) from error
