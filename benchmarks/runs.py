"""One run of either side on a module in memory; the timed part is defined here only.

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
from shardy_py.frontends.mlir import parse_module
from shardy_py.frontends.mlir.kept_tables import MANY_TABLES
from shardy_py.oracle.conformance import reference_registry
from shardy_py.oracle.reference import full_pipeline

PIPELINE = full_pipeline("sdy-propagation-pipeline")
TINY = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<4xf32> {
  %y = stablehlo.add %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
"""Program for the warm-up run of a process, which imports everything."""

STAGES = ("import", "prepare", "compile", "solve", "finish", "write")


@frozen
class Run:
    """The times of one run, in seconds.

    Args:
        seconds: By the clock on the wall.
        cpu_seconds: Of this process, which other processes disturb less.
        stages: Of ours, by stage.
        passes: Of ours, by pass; a pass that runs twice counts twice. Empty unless they were asked for.
    """

    seconds: float
    cpu_seconds: float
    stages: dict[str, float] = field(factory=dict)
    passes: dict[str, float] = field(factory=dict)


def bytecode_of(module: Any) -> bytes:
    """Return a module in the form from which copies are made fastest."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def copy_module(bytecode: bytes, context: Any) -> Any:
    """Return a fresh module in a context that has all its types and attributes already."""
    from jaxlib.mlir import ir

    return ir.Module.parse(bytecode, context)


def give_new_tables(module: Any, number: int) -> Any:
    """Give a module an attribute that no other one has, and return the module.

    The tables of its bytecode are others then, as they are where locations are others, so that nothing that is kept by
    their bytes is found.

    Args:
        module: The module.
        number: The value of the attribute.
    """
    from jaxlib.mlir import ir

    with module.context:
        module.operation.attributes["benchmarks.run"] = ir.StringAttr.get(str(number))
    return module


def forget_tables() -> None:
    """Let small tables take the place of those that are kept, so that no timed run frees those of another program."""
    for number in range(MANY_TABLES):
        run_ours(give_new_tables(parse_module(TINY), number), verify=False)


def run_ours(module: Any, *, verify: bool = True, by_pass: bool = False) -> Run:
    """Propagate in a module and return the times.

    Args:
        module: The module.
        verify: Whether MLIR's verifier runs over the module as it comes in, as it does unless one says otherwise.
        by_pass: Whether each pass is timed, too. A function that is called after each pass may change the program, so
            that such a run keeps less of what it knows, and takes longer.
    """
    clock = _Clock()
    options: dict[str, Any] = {
        "registry": reference_registry(),
        "on_stage": clock.stage,
        "on_pass": clock.end_pass if by_pass else None,
        "verify": verify,
    }
    return _timed(lambda: sdy.propagate(module, **options), clock)


def run_reference(module: Any, *, verify: bool = True) -> Run:
    """Run the C++ passes over a module and return the times.

    Args:
        module: The module.
        verify: Whether MLIR's verifier runs after every pass, as it does unless one says otherwise.
    """
    return _timed(reference_passes(module, verify=verify), _Clock())


def reference_passes(module: Any, *, verify: bool = True) -> Callable[[], object]:
    """Return a function that runs the C++ passes over a module; see `run_reference`."""
    from jaxlib.mlir import passmanager

    with module.context:
        manager = passmanager.PassManager.parse(PIPELINE)
    manager.enable_verifier(verify)
    return lambda: manager.run(module.operation)


class _Clock:
    """Clock of stages and passes."""

    def __init__(self) -> None:
        self.starts: list[tuple[str, float]] = []
        self.passes: dict[str, float] = {}
        self._last = 0.0

    def stage(self, name: str) -> None:
        """Note the start of a stage."""
        now = perf_counter()
        self.starts.append((name, now))
        if name in ("prepare", "finish"):
            self._last = now

    def end_pass(self, name: str, program: object) -> None:
        """Note the end of a pass, which began where the one before it ended."""
        now = perf_counter()
        self.passes[name] = self.passes.get(name, 0.0) + now - self._last
        self._last = now

    def stage_seconds(self, begin: float, end: float) -> dict[str, float]:
        """Return the seconds of each stage; the time before the first one counts as its own."""
        times = [begin, *(time for _, time in self.starts[1:]), end]
        return {stage: times[index + 1] - times[index] for index, (stage, _) in enumerate(self.starts)}


def _timed(function: Callable[[], object], clock: _Clock) -> Run:
    gc.collect()
    cpu = process_time()
    begin = perf_counter()
    # What comes back is kept until the clock has stopped: freeing it is no part of the run.
    kept = function()
    end = perf_counter()
    cpu = process_time() - cpu
    del kept
    return Run(end - begin, cpu, clock.stage_seconds(begin, end), clock.passes)
