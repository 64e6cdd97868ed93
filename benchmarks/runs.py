"""One run of either side on a module in memory; what is timed is said here and nowhere else.

Ours is `shardy_py.propagate` on an ``ir.Module``: from the native module to the op graph, all passes, and back into the
same native module. The reference is ``PassManager.run`` with ``sdy-propagation-pipeline``, as it comes: with MLIR's
verifier after every pass. Parsing, copying and printing are outside on both sides, and so is collecting garbage.
"""

from __future__ import annotations

import gc
import io
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

from attrs import field, frozen

import shardy_py as sdy
from shardy_py.testing.conformance import reference_registry
from shardy_py.testing.reference import full_pipeline

PIPELINE = full_pipeline("sdy-propagation-pipeline")
STAGES = ("import", "prepare", "compile", "solve", "finish", "write")


@frozen
class Run:
    """The times of one run, in seconds.

    Args:
        seconds: By the clock on the wall.
        cpu_seconds: Of this process, which other processes disturb less.
        stages: Of ours, by stage.
    """

    seconds: float
    cpu_seconds: float
    stages: dict[str, float] = field(factory=dict)


def bytecode_of(module: Any) -> bytes:
    """Return a module in the form from which copies are made fastest."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def copy_module(bytecode: bytes, context: Any) -> Any:
    """Return a fresh module in a context that has all its types and attributes already."""
    from jaxlib.mlir import ir

    return ir.Module.parse(bytecode, context)


def run_ours(module: Any) -> Run:
    """Propagate in a module and return what it took."""
    registry = reference_registry()
    starts: list[tuple[str, float]] = []
    return _timed(
        lambda: sdy.propagate(module, registry=registry, on_stage=lambda stage: starts.append((stage, perf_counter()))),
        starts,
    )


def run_reference(module: Any, *, verify: bool = True) -> Run:
    """Run the C++ passes over a module and return what they took.

    Args:
        module: The module.
        verify: Whether MLIR's verifier runs after every pass, as it does unless one says otherwise.
    """
    from jaxlib.mlir import passmanager

    with module.context:
        manager = passmanager.PassManager.parse(PIPELINE)
    manager.enable_verifier(verify)
    return _timed(lambda: manager.run(module.operation), [])


def _timed(function: Callable[[], object], starts: list[tuple[str, float]]) -> Run:
    gc.collect()
    cpu = process_time()
    begin = perf_counter()
    # What comes back is kept until the clock has stopped: freeing it is no part of the run.
    kept = function()
    end = perf_counter()
    cpu = process_time() - cpu
    del kept
    return Run(end - begin, cpu, _stage_seconds(begin, starts, end))


def _stage_seconds(begin: float, starts: list[tuple[str, float]], end: float) -> dict[str, float]:
    """Return how long each stage took; what comes before the first one counts as its own."""
    times = [begin, *(time for _, time in starts[1:]), end]
    return {stage: times[index + 1] - times[index] for index, (stage, _) in enumerate(starts)}
