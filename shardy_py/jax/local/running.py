"""A local program on host devices, and beside it the program on one device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from shardy_py.api.options import LocalOptions
from shardy_py.api.result import Result
from shardy_py.api.source import read_program
from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.op_names import MESH
from shardy_py.jax.local.make import make_local_graph
from shardy_py.jax.local.native_form import FrontendForm
from shardy_py.jax.run_report import RunReport, result_lines
from shardy_py.jax.running import StepCallback, tell_nothing
from shardy_py.jax.running_inputs import given_arrays, read_native
from shardy_py.jax.xla_ops import foreign_ops_named

if TYPE_CHECKING:
    from shardy_py.jax.local import LocalProgram


def run_local(
    result: Result,
    local: LocalProgram,
    source: Any = None,
    *,
    inputs: Path | Sequence[Any] | None = None,
    seed: int = 0,
    tolerance: float | None = None,
    on_step: StepCallback | None = None,
) -> RunReport:
    """Run a local program on host devices, each in the role of one of its devices.

    Args:
        result: The propagated program.
        local: Its local program.
        source: The program as it was given, to compare with on one device; None for no comparison.
        inputs: The arrays for the arguments, or the ``.npz`` file with them; by default random ones.
        seed: The seed of random inputs.
        tolerance: The largest relative difference of floats; by default it depends on the dtype.
        on_step: Called as each run starts: one, and with a comparison another one.

    Raises:
        UnsupportedError: inputs cannot be made up for the program, or it comes from PyTorch.
        OptionError: the inputs do not fit.
        WorkerError: XLA refuses the program.
    """
    if frontend_of(result.program).name == "torch":
        message = "XLA does not run the local program of a program of PyTorch"
        hint = "'shardy run FILE' runs it on simulated devices; Result.to_torch runs it on those of a device mesh"
        raise UnsupportedError(Diagnostic("no-xla-program", message, hint=hint))
    from shardy_py.jax.unsharded import has_manual_computations

    arguments = given_arrays(result, [port.type for port in local.arguments], inputs, seed=seed)
    step = on_step or tell_nothing
    step("Running")
    start = perf_counter()
    with nullcontext() if isinstance(local.form, FrontendForm) else foreign_ops_named(result.program):
        arrays = local.run(*arguments)
    seconds = perf_counter() - start
    expected: Sequence[Any] | None = None
    notes: tuple[str, ...] = ()
    compared_with = ""
    if source is not None and isinstance(local.form, FrontendForm):
        step("Running without shardings")
        expected, compared_with = _run_on_one_device(source, result, arguments), "one device, without shardings"
    elif source is not None:
        from shardy_py.jax.local.child import run_whole

        program, native = read_native(source, result)
        if has_manual_computations(program):
            notes = ("the program has manual computations, which one device cannot run: it is not compared",)
        else:
            step("Running without shardings")
            expected, compared_with = run_whole(native, arguments), "one device, without shardings"
    shown = [(str(port.type), str(port.sharding or "")) for port in local.results]
    lines = result_lines(result, shown, arrays, expected, tolerance=tolerance)
    return RunReport(local.device_count, "cpu", lines, seconds, compared_with, tuple(arrays), notes)


def _run_on_one_device(source: Any, result: Result, arrays: Sequence[Any]) -> list[Any]:
    """Return the results of a program that its own frontend runs, without shardings, on one device."""
    program = read_program(source, result.registry)
    program.shardings.clear()
    for op in [op for op in program.body.ops if op.name == MESH]:
        op.erase()
    unsharded = make_local_graph(program, registry=result.registry, options=LocalOptions(), is_explicit=True)
    return unsharded.run(*arrays)
