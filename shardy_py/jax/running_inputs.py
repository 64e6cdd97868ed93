"""Inputs of a run on devices: the arrays for the arguments, and the program that it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shardy_py.api.result import Result
from shardy_py.api.source import read_program
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.program import Program


def given_arrays(result: Result, types: Sequence[Any], inputs: Path | Sequence[Any] | None, *, seed: int) -> list[Any]:
    """Return the arguments of a run.

    Args:
        result: The propagated program.
        types: The dtypes and shapes of its arguments.
        inputs: The arrays, or the ``.npz`` file with them; None for random ones. Where the program brings some of its
            arguments itself, such as the initializers of a model, only the others may be given.
        seed: The seed of random ones.

    Raises:
        UnsupportedError: inputs cannot be made up for the program.
        OptionError: they do not fit.
    """
    from shardy_py.jax.inputs import random_inputs
    from shardy_py.jax.npz import read_inputs

    arrays = frontend_of(result.program).argument_arrays(result.program)
    if inputs is None:
        random_arrays = list(random_inputs(result.program, result.main, seed=seed))
        return [arrays.get(number, array) for number, array in enumerate(random_arrays)]
    others = [type_ for number, type_ in enumerate(types) if number not in arrays]
    expected_types = others if arrays and not isinstance(inputs, Path) and len(inputs) == len(others) else types
    if isinstance(inputs, Path):
        return list(read_inputs(inputs, types))
    if expected_types is types:
        return list(inputs)
    rest = iter(inputs)
    return [arrays[number] if number in arrays else next(rest) for number in range(len(types))]


def read_native(source: Any, result: Result) -> tuple[Program, Any]:
    """Return the program that a run is compared with, and it as MLIR.

    Args:
        source: The program as it was given.
        result: The propagated program.
    """
    program = read_program(source, result.registry)
    frontend = frontend_of(program)
    return program, frontend.to_mlir(frontend.write_back(program))
