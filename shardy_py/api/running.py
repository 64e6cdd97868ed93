"""A propagated program on devices, and beside it the program without shardings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from shardy_py.api.result import Result
from shardy_py.api.source import read_program
from shardy_py.api.xla_ops import foreign_ops_named
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph import Program
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.targets.jax.compiled import CompiledModule
    from shardy_py.targets.jax.deviations import Deviation

StepCallback = Callable[[str], None]
"""Receiver of what a run does next."""

_RESULT_INFO = "jax.result_info"
_WITHOUT_KEY = "stablehlo.rng"


@frozen
class ResultLine:
    """One result of a run.

    Args:
        name: What the program calls it, or ``result0`` and so on.
        type: Its dtype and shape.
        sharding: Its sharding, or "" for a replicated one.
        largest: The largest finite magnitude of its elements; 0 without any.
        not_finite: How many elements are infinite or NaN.
        difference: How far it is from the run it was compared with; None without one.
    """

    name: str
    type: str
    sharding: str
    largest: float
    not_finite: int
    difference: Deviation | None = None


@frozen
class RunReport:
    """The outcome of a run.

    Args:
        devices: How many devices it ran on.
        platform: Which they are, for example ``cpu``.
        results: The results.
        seconds: How long the run took, without compiling.
        compared_with: What it was compared with, in words; "" without a comparison.
        arrays: The results themselves, as arrays of numpy.
        notes: What a comparison cannot tell.
    """

    devices: int
    platform: str
    results: tuple[ResultLine, ...]
    seconds: float
    compared_with: str = ""
    arrays: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_within(self) -> bool:
        """True where all differences are within their tolerances."""
        return all(item.difference is None or item.difference.is_within for item in self.results)


def run_result(
    result: Result,
    source: Any = None,
    *,
    inputs: Path | Sequence[Any] | None = None,
    seed: int = 0,
    tolerance: float | None = None,
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
            `shardy_py.targets.jax.inputs`.
        seed: The seed of random inputs.
        tolerance: The largest relative difference of floats; by default it depends on the dtype, see
            `shardy_py.targets.jax.deviations`.
        on_step: Called as each of the `run_steps` starts.

    Raises:
        UnsupportedError: XLA refuses the module, or inputs cannot be made up for it.
        OptionError: there are too few devices, or the inputs do not fit.
    """
    if is_simulated(result):
        from shardy_py.api.torch_running import run_torch

        return run_torch(result, inputs=inputs, seed=seed, compare=source is not None, tolerance=tolerance)
    step = on_step or tell_nothing
    step("Compiling in XLA")
    with foreign_ops_named(result.program):
        compiled = result.to_jax()
    given = given_arrays(result, compiled.in_types, inputs, seed=seed)
    step("Running")
    arrays, seconds = _run(compiled, given)
    wanted, compared_with = None, ""
    if source is not None:
        step("Compiling without shardings")
        whole, compared_with = _compile_unsharded(source, result)
        step("Running without shardings")
        wanted = _run(whole, given)[0]
    devices = sorted(_devices(compiled), key=lambda device: device.id)
    return RunReport(
        devices=len(devices),
        platform=devices[0].platform if devices else "",
        results=result_lines(
            result,
            [(str(type_), _spec_text(compiled, number)) for number, type_ in enumerate(compiled.out_types)],
            arrays,
            wanted,
            tolerance=tolerance,
        ),
        seconds=seconds,
        compared_with=compared_with,
        arrays=tuple(arrays),
        notes=tuple(_notes(result)) if compared_with else (),
    )


def run_steps(*, compare: bool) -> int:
    """Return the number of steps of a run: it compiles and runs, and with a comparison it does so once more."""
    return 4 if compare else 2


def tell_nothing(step: str) -> None:
    """Show nothing."""


def is_simulated(result: Result) -> bool:
    """Return whether a program runs on simulated devices: one of PyTorch."""
    return frontend_of(result.program).name == "torch"


def given_arrays(result: Result, types: Sequence[Any], inputs: Path | Sequence[Any] | None, *, seed: int) -> list[Any]:
    """Return the arguments of a run.

    Args:
        result: The propagated program.
        types: The dtypes and shapes of its arguments.
        inputs: The arrays, or the ``.npz`` file with them; None for random ones.
        seed: The seed of random ones.

    Raises:
        UnsupportedError: inputs cannot be made up for the program.
        OptionError: they do not fit.
    """
    from shardy_py.targets.jax.inputs import random_inputs
    from shardy_py.targets.jax.npz import read_inputs

    if inputs is None:
        return list(random_inputs(result.program, result.main, seed=seed))
    return list(read_inputs(inputs, types) if isinstance(inputs, Path) else inputs)


def read_native(source: Any, result: Result) -> tuple[Program, Any]:
    """Return the program that a run is compared with, and it as MLIR.

    Args:
        source: The program as it was given.
        result: The propagated program.
    """
    program = read_program(source, result.registry)
    frontend = frontend_of(program)
    return program, frontend.to_mlir(frontend.write_back(program))


def _notes(result: Result) -> Iterator[str]:
    places = [op.location for op in result.program.walk() if op.name == _WITHOUT_KEY]
    if places:
        where = f" at {places[0]}" if places[0] else ""
        yield f"{_WITHOUT_KEY}{where} gives other numbers in every run: what depends on it cannot be compared"


def _run(compiled: CompiledModule, inputs: Sequence[Any]) -> tuple[list[Any], float]:
    """Return the results as arrays of numpy, and the seconds that took."""
    import numpy

    # Copies, because a donated argument may share its memory with the array that was given.
    copies = [numpy.array(value) for value in inputs]
    start = perf_counter()
    results = [numpy.asarray(value) for value in compiled(*copies)]
    return results, perf_counter() - start


def _compile_unsharded(source: Any, result: Result) -> tuple[CompiledModule, str]:
    from shardy_py.targets.jax.unsharded import compile_unsharded, has_manual_computations

    program, native = read_native(source, result)
    compiled = compile_unsharded(native, semantics=result.registry)
    if has_manual_computations(program):
        return compiled, "the same devices, with nothing sharded but the manual computations"
    return compiled, "one device, without shardings"


def _devices(compiled: CompiledModule) -> set[Any]:
    return {device for sharding in (*compiled.in_shardings, *compiled.out_shardings) for device in sharding.device_set}


def _spec_text(compiled: CompiledModule, number: int) -> str:
    spec = compiled.out_shardings[number].spec
    return "" if not any(spec) else str(tuple(spec))


def result_lines(
    result: Result,
    shown: Sequence[tuple[str, str]],
    arrays: Sequence[Any],
    wanted: Sequence[Any] | None,
    *,
    tolerance: float | None,
) -> tuple[ResultLine, ...]:
    """Return what a report says of the results, which are compared with others.

    Args:
        result: The propagated program.
        shown: The type and the sharding of each result, as text.
        arrays: The results.
        wanted: The results of another run; None for no comparison.
        tolerance: The largest relative difference of floats; by default it depends on the dtype.
    """
    from shardy_py.targets.jax.deviations import compare_results

    differences: Sequence[Deviation | None] = [None] * len(arrays)
    if wanted is not None:
        differences = compare_results(arrays, wanted, tolerance=tolerance)
    return tuple(
        _line(result, number, type_, sharding, array, difference)
        for number, ((type_, sharding), array, difference) in enumerate(zip(shown, arrays, differences, strict=True))
    )


def _line(
    result: Result, number: int, type_: str, sharding: str, array: Any, difference: Deviation | None
) -> ResultLine:
    import numpy

    wide = numpy.abs(array.astype("complex128" if array.dtype.kind == "c" else "float64"))
    finite = numpy.isfinite(wide)
    attributes = result.main.attributes.get("res_attrs") or ()
    info = str(attributes[number].get(_RESULT_INFO, "")) if number < len(attributes) else ""
    return ResultLine(
        name=info.strip('"') or f"result{number}",
        type=type_,
        sharding=sharding,
        largest=float(wide.max(initial=0.0, where=finite)),
        not_finite=int((~finite).sum()),
        difference=difference,
    )
