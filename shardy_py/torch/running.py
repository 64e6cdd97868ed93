"""A propagated program of PyTorch on simulated devices, and beside it the exported program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from shardy_py.api.result import Result
from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.types import TensorType
from shardy_py.jax.run_report import RunReport, result_lines
from shardy_py.jax.running_inputs import given_arrays

_NOTE = "the devices are simulated in one process; Result.to_torch runs on the processes of a device mesh"


def run_torch(
    result: Result,
    *,
    inputs: Path | Sequence[Any] | None,
    seed: int,
    compare: bool,
    tolerance: float | None,
) -> RunReport:
    """Run a program of PyTorch with the parameters that were exported.

    Args:
        result: The propagated program.
        inputs: The arrays for the inputs, without parameters, or the ``.npz`` file with them; None for random ones.
        seed: The seed of random inputs.
        compare: Whether to run the exported program, too.
        tolerance: The largest relative difference of floats; by default it depends on the dtype.

    Raises:
        UnsupportedError: the program came without its tensors, or is a graph module.
        OptionError: the inputs do not fit.
    """
    from shardy_py.torch.parallel import make_local_torch_program
    from shardy_py.torch.parallel.exported import run_exported, to_array

    origin = result.program.origin
    native = _exported_program(origin.native)
    state = {**native.state_dict, **native.constants}
    input_tensors = iter(_inputs(result, inputs, seed=seed))
    tensors = [next(input_tensors) if item.kind == "input" else state[item.name].detach() for item in origin.arguments]
    local = make_local_torch_program(result.torch_forms.explicit, result.registry)
    start = perf_counter()
    results = local.simulate(*tensors)
    seconds = perf_counter() - start
    numbers = [item.result for item in origin.outputs if not item.writes and item.result is not None]
    ports = [(result.main.function_results[number], local.results[number]) for number in numbers]
    shown = [(str(value.type), str(port.sharding or "")) for value, port in ports]
    arrays = [to_array(results[number]) for number in numbers]
    expected = None
    if compare:
        example_inputs = [
            tensor for item, tensor in zip(origin.arguments, tensors, strict=True) if item.kind == "input"
        ]
        expected = [to_array(item) for item in run_exported(native, example_inputs)]
    return RunReport(
        devices=max(local.mesh.total_size, 1),
        platform="cpu",
        results=result_lines(result, shown, arrays, expected, tolerance=tolerance),
        seconds=seconds,
        compared_with="the exported program" if compare else "",
        arrays=tuple(arrays),
        notes=(_NOTE,),
    )


def _exported_program(native: Any) -> Any:
    if hasattr(native, "graph_signature"):
        return native
    message = "the program came without its parameters" if native is None else "the program is a graph module"
    hint = "give the file of torch.export.save, without --untrusted, or what torch.export.export returns"
    raise UnsupportedError(Diagnostic("no-exported-program", message, hint=hint))


def _inputs(result: Result, inputs: Path | Sequence[Any] | None, *, seed: int) -> list[Any]:
    """Return the tensors of the inputs."""
    from shardy_py.jax.arguments import array_types
    from shardy_py.torch.parallel.exported import to_tensor

    kinds = [item.kind for item in result.program.origin.arguments]
    values = result.main.regions[0].blocks[0].arguments
    input_values = [value for value, kind in zip(values, kinds, strict=True) if kind == "input"]
    arrays = given_arrays(result, array_types(input_values, "input"), inputs, seed=seed)
    if inputs is None:
        arrays = [array for array, kind in zip(arrays, kinds, strict=True) if kind == "input"]
    types = [value.type for value in input_values if isinstance(value.type, TensorType)]
    return [to_tensor(array, type_.element_type) for type_, array in zip(types, arrays, strict=True)]
