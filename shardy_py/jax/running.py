"""A propagated program on devices, and beside it the program without shardings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from shardy_py.api.result import Result
from shardy_py.extensions import function
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.interfaces.frontend import BUNDLED_NAMES
from shardy_py.jax.local.native_form import FrontendForm
from shardy_py.jax.result_methods import Partitioner
from shardy_py.jax.run_report import RunReport, result_lines
from shardy_py.jax.running_inputs import given_arrays, read_native
from shardy_py.jax.xla_ops import foreign_ops_named

if TYPE_CHECKING:
    from shardy_py.jax.callable.device_program import DeviceProgram
    from shardy_py.jax.compiled import CompiledModule

StepCallback = Callable[[str], None]
"""Receiver of what a run does next."""

_WITHOUT_KEY = "stablehlo.rng"


def run_result(
    result: Result,
    source: Any = None,
    *,
    inputs: Path | Sequence[Any] | None = None,
    seed: int = 0,
    tolerance: float | None = None,
    partitioner: Partitioner = "shardy_py",
    on_step: StepCallback | None = None,
) -> RunReport:
    """Run a propagated program on the devices of JAX, and compare with the program without shardings.

    A program of PyTorch runs on simulated devices, with the parameters that were exported.

    Args:
        result: The propagated program.
        source: The program as it was given, to compare with: in any form that `propagate` takes. It runs on one device,
            or, where it has manual computations, on the same devices with nothing sharded around them. None for no
            comparison.
        inputs: The arrays for the arguments, or the ``.npz`` file with them; by default random ones, see
            `shardy_py.jax.inputs`.
        seed: The seed of random inputs.
        tolerance: The largest relative difference of floats; by default it depends on the dtype, see
            `shardy_py.jax.deviations`.
        partitioner: What decides how data moves; see `Result.to_jax`.
        on_step: Called as each of the `run_steps` starts.

    Raises:
        UnsupportedError: XLA refuses the module, or inputs cannot be made up for it.
        OptionError: there are too few devices, or the inputs do not fit.
    """
    if is_simulated(result):
        report: RunReport = function("run_torch")(
            result, inputs=inputs, seed=seed, compare=source is not None, tolerance=tolerance
        )
        return report
    if _runs_in_op_graph(result, partitioner):
        from shardy_py.jax.local.running import run_local

        return run_local(result, result.local(), source, inputs=inputs, seed=seed, tolerance=tolerance, on_step=on_step)
    step = on_step or tell_nothing
    step("Compiling in XLA")
    with foreign_ops_named(result.program):
        compiled = result.to_jax(partitioner=partitioner)
        # Compiled now, so that the run is timed without it.
        assert compiled.executable
    arguments = given_arrays(result, compiled.in_types, inputs, seed=seed)
    step("Running")
    arrays, seconds = _run(compiled, arguments)
    expected, compared_with = None, ""
    if source is not None:
        step("Compiling without shardings")
        unsharded, compared_with = _compile_unsharded(source, result)
        step("Running without shardings")
        expected = _run(unsharded, arguments)[0]
    devices = sorted(_devices(compiled), key=lambda device: device.id)
    return RunReport(
        devices=len(devices),
        platform=devices[0].platform if devices else "",
        results=result_lines(
            result,
            [(str(type_), _spec_text(compiled, number)) for number, type_ in enumerate(compiled.out_types)],
            arrays,
            expected,
            tolerance=tolerance,
        ),
        seconds=seconds,
        compared_with=compared_with,
        arrays=tuple(arrays),
        notes=tuple(_notes(result)) if compared_with else (),
    )


def _runs_in_op_graph(result: Result, partitioner: Partitioner) -> bool:
    """Return whether a program runs op by op, as MLIR does not read what its frontend writes."""
    frontend = frontend_of(result.program)
    if frontend.writes_local:
        return True
    # Only its local program tells whether MLIR reads the text of a plugin's frontend.
    may_be_text = partitioner == "shardy_py" and frontend.name not in BUNDLED_NAMES
    return may_be_text and isinstance(result.local().form, FrontendForm)


def run_steps(*, compare: bool) -> int:
    """Return the number of steps of a run: it compiles and runs, and with a comparison it does so once more."""
    return 4 if compare else 2


def tell_nothing(step: str) -> None:
    """Show nothing."""


def is_simulated(result: Result) -> bool:
    """Return whether a program runs on simulated devices: one of PyTorch."""
    return frontend_of(result.program).name == "torch"


def _notes(result: Result) -> Iterator[str]:
    places = [op.location for op in result.program.walk() if op.name == _WITHOUT_KEY]
    if places:
        where = f" at {places[0]}" if places[0] else ""
        yield f"{_WITHOUT_KEY}{where} gives other numbers in every run: what depends on it cannot be compared"


def _run(compiled: DeviceProgram | CompiledModule, inputs: Sequence[Any]) -> tuple[list[Any], float]:
    """Return the results as arrays of numpy, and the seconds that took."""
    import numpy

    # Copies, because a donated argument may share its memory with the array that was given.
    copies = [numpy.array(value) for value in inputs]
    start = perf_counter()
    results = [numpy.asarray(value) for value in compiled.run(*copies)]
    return results, perf_counter() - start


def _compile_unsharded(source: Any, result: Result) -> tuple[CompiledModule, str]:
    from shardy_py.jax.unsharded import compile_unsharded, has_manual_computations

    program, native = read_native(source, result)
    compiled = compile_unsharded(native, semantics=result.registry)
    if has_manual_computations(program):
        return compiled, "the same devices, with nothing sharded but the manual computations"
    return compiled, "one device, without shardings"


def _devices(compiled: DeviceProgram | CompiledModule) -> set[Any]:
    return {device for sharding in (*compiled.in_shardings, *compiled.out_shardings) for device in sharding.device_set}


def _spec_text(compiled: DeviceProgram | CompiledModule, number: int) -> str:
    spec = compiled.out_shardings[number].spec
    return "" if not any(spec) else str(tuple(spec))
