"""Local programs on host devices, compared with one device."""

from __future__ import annotations

from typing import Any

import numpy as np

import shardy_py as sdy
from shardy_py.api.options import LocalOptions
from shardy_py.frontends.mlir import import_module, parse_module, write_back
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.local import make_local_program
from shardy_py.jax.unsharded import compile_unsharded
from shardy_py.plugins import Registry
from shardy_py.transforms.pipelines import PropagationPipeline
from shardy_py.transforms.run import run_on_attributes

PADDINGS = (float("nan"), 77.0)
"""Numbers for padding that show where it counts: the first in floating-point results, the second in integers."""


def compare(text: str, *arrays: Any) -> list[str]:
    """Check that the local program of a text gives what one device gives, and that replicas agree.

    Args:
        text: The module, with shardings.
        arrays: The arguments of its main function.

    Returns:
        The names of the ops that were gathered.
    """
    result = sdy.propagate(text, explicit_collectives=True)
    local = result.local(optimize=False)
    expected = compile_unsharded(text, semantics=result.registry)(*arrays)
    for program in (local, result.local()):
        for actual, reference in zip(program.run(*arrays), expected, strict=True):
            np.testing.assert_allclose(actual, reference, rtol=2e-5, atol=2e-5)
    return [warning.op for warning in local.warnings]


def compare_padded(text: str, *arrays: Any) -> list[str]:
    """Check the same where arguments need not divide, whatever padding holds.

    Args:
        text: The module, with shardings.
        arrays: The arguments of its main function.

    Returns:
        The names of the ops that were gathered.
    """
    registry = Registry.from_entry_points()
    module = propagate_unevenly(text)
    expected = compile_unsharded(text, semantics=registry)(*arrays)
    for padding in PADDINGS:
        for optimize in (True, False):
            options = LocalOptions(optimize=optimize)
            local = make_local_program(module, registry=registry, options=options, padding=padding)
            for number, (actual, reference) in enumerate(zip(local.run(*arrays), expected, strict=True)):
                message = f"result {number}, {padding}, optimize={optimize}"
                np.testing.assert_allclose(actual, reference, rtol=2e-5, atol=2e-5, err_msg=message)
    return [warning.op for warning in local.warnings]


def propagate_unevenly(text: str) -> Any:
    """Return a propagated module with explicit collectives, whose inputs and outputs need not divide."""
    program = import_module(parse_module(text))
    pipeline = PropagationPipeline(
        enable_insert_explicit_collectives=True,
        reshard_ops_without_rule=True,
        update_non_divisible_input_output_shardings=False,
    )
    run_on_attributes(program, pipeline.passes, PassContext(Registry.from_entry_points()))
    return write_back(program)
