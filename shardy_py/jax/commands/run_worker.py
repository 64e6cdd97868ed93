"""The process that runs a program for ``shardy run``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve

from shardy_py.api.result import Result
from shardy_py.cli.child import answer_parent
from shardy_py.cli.progress import ShowProgress, Steps
from shardy_py.errors import Diagnostic, OptionError, ShardyError
from shardy_py.extensions import function
from shardy_py.frontends.select import frontend_of
from shardy_py.jax.commands.run_run import RunAnswer, RunRequest
from shardy_py.jax.run_report import RunReport
from shardy_py.jax.running import is_simulated, run_result, run_steps
from shardy_py.plugins.plugin_functions import functions_of, functions_of_installed
from shardy_py.support.texts import as_error


def answer(request: RunRequest, show: ShowProgress) -> RunAnswer:
    """Propagate the program and run it; an error is part of the answer."""
    try:
        return _run(request, show)
    except ShardyError as error:
        return RunAnswer(error=error)
    except (MemoryError, RecursionError, OverflowError) as error:
        return RunAnswer(error=as_error(error, request.program.file))


def _run(request: RunRequest, show: ShowProgress) -> RunAnswer:
    steps = Steps(show, run_steps(compare=request.compare))
    result = request.program.propagate(schedule=request.schedule, on_progress=steps.on_progress)
    frontend = frontend_of(result.program)
    if is_simulated(result) or frontend.writes_local:
        _check_simulated(request, "PyTorch" if is_simulated(result) else frontend.name)
    elif functions := _functions(request, result):
        _check_simulated(request, "a plugin with FUNCTIONS")
        report = function("run_functions")(
            result,
            functions,
            inputs=request.inputs,
            seed=request.seed,
            compare=request.compare,
            tolerance=request.tolerance,
        )
        return _answer(report, request, result)
    # JAX counts its devices when it starts, and nothing above has started it.
    from shardy_py.jax.host import use_devices

    count = request.devices or max((mesh.total_size for mesh in result.program.meshes.values()), default=1)
    use_devices(count, request.platform)
    report = run_result(
        result,
        request.program.module if request.compare else None,
        inputs=request.inputs,
        seed=request.seed,
        partitioner=request.partitioner or "shardy_py",
        tolerance=request.tolerance,
        on_step=steps.start,
    )
    return _answer(report, request, result)


def _functions(request: RunRequest, result: Result) -> dict[str, Callable[..., Any]]:
    """Return the functions of numpy of given and installed plugins if ops of the program have some; else none."""
    names = {op.name for op in result.program.walk()}
    functions = {
        **functions_of_installed(result.registry.plugins, names),
        **functions_of(request.program.options.plugin_files),
    }
    return functions if not names.isdisjoint(functions) else {}


def _answer(report: RunReport, request: RunRequest, result: Result) -> RunAnswer:
    from shardy_py.jax.npz import outputs_file

    outputs = outputs_file(report.arrays) if request.outputs else b""
    return RunAnswer(evolve(report, arrays=()), outputs=outputs, warnings=result.warnings)


def _check_simulated(request: RunRequest, kind: str) -> None:
    """Check that a program that runs on simulated devices has no options about real devices.

    Raises:
        OptionError: it has one.
    """
    options = [
        ("--platform", request.platform != "cpu"),
        ("--devices", request.devices is not None),
        ("--partitioner", request.partitioner is not None),
    ]
    for option, is_given in options:
        if is_given:
            message = f"{option} has no effect on a program of {kind}: as many devices as the mesh has are simulated"
            hint = f"leave out {option}"
            if kind == "PyTorch":
                hint += "; Result.to_torch(device_mesh) runs on the devices of a device mesh"
            raise OptionError(Diagnostic("simulated-devices", message, hint=hint))


def main() -> None:
    """Answer the request of the command."""
    answer_parent(answer)
