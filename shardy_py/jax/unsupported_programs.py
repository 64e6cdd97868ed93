"""Programs that XLA compiles and nobody can run, found before XLA sees the module."""

from __future__ import annotations

from collections.abc import Mapping

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op, Program
from shardy_py.jax.callable.callbacks import is_python_target

_ENDLESS: Mapping[str, str] = {
    "stablehlo.infeed": "waits for data that nothing hands over",
    "stablehlo.outfeed": "hands over data that nothing takes",
    "stablehlo.recv": "waits for data that nothing sends",
    "stablehlo.send": "sends data that nothing takes",
}


_PARTITIONED_BY_JAX = "CustomSPMDPartitioning"


def refuse_what_xla_partitions(program: Program) -> None:
    """Check that no op needs XLA's partitioner, which a local program does without.

    Raises:
        UnsupportedError: one does.
    """
    problems = [
        Diagnostic(
            "partitioned-by-jax",
            "the function that says how it is partitioned is not of this process, or is gone",
            op.location,
            op.name,
            "propagate the Lowered of jax.jit, and keep it, or give the computation without custom_partitioning",
        )
        for op in program.walk()
        if op.attributes.get("call_target_name") == _PARTITIONED_BY_JAX
    ]
    if problems:
        raise UnsupportedError(*problems)


def refuse_what_cannot_run(program: Program, *, callbacks: int = 0) -> None:
    """Check that no op would wait for ever, or call into a Python process that is gone.

    Args:
        program: The program.
        callbacks: How many functions of this process it may call.

    Raises:
        UnsupportedError: an op would wait for ever, or call into a Python process that is gone.
    """
    problems = [problem for op in program.walk() if (problem := why_it_cannot_run(op, callbacks=callbacks)) is not None]
    if problems:
        raise UnsupportedError(*problems)


def why_it_cannot_run(op: Op, *, callbacks: int = 0) -> Diagnostic | None:
    """Return the error about an op that no device can run; None for any other.

    Args:
        op: The op.
        callbacks: How many functions of this process the program may call.
    """
    if op.name in _ENDLESS:
        message = f"it {_ENDLESS[op.name]}: JAX has no call for that any more"
        return Diagnostic("waits-for-ever", message, op.location, op.name)
    target = op.attributes.get("call_target_name") if op.name == "stablehlo.custom_call" else None
    if not isinstance(target, str) or is_python_target(target) is None or callbacks:
        return None
    message = f"@{target} calls a Python function of the process that wrote the module, which XLA cannot find"
    hint = "leave out jax.debug.print, jax.pure_callback and the like"
    return Diagnostic("python-callback", message, op.location, op.name, hint)
