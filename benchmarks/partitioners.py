"""Local programs against XLA's partitioner: bytes sent, run times side by side, and the distance of the results.

    python -m benchmarks.partitioners FILE_OR_FOLDER...

Each program runs in a process of its own, on host devices: as `Result.to_jax` runs it, propagated as `jax.jit` does,
and as XLA propagates and partitions the same module. Both run in turns in one process; the median counts. The results
are compared with those of one device, or, of a program with manual computations, with each other.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from math import exp, log
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from attrs import asdict, evolve, frozen

from benchmarks.programs.files import programs_in

_SECONDS = 300.0
_TURNS = 7
_ADDED = 64
"""Bytes that are added to both sides of a ratio, as many programs send nothing."""


@frozen
class PartitionerComparison:
    """A program on both ways: bytes that one device sends, seconds, and the largest relative deviation."""

    name: str
    our_bytes: float
    their_bytes: float
    our_seconds: float
    their_seconds: float
    deviation: float

    def __str__(self) -> str:
        byte_ratio = (self.our_bytes + _ADDED) / (self.their_bytes + _ADDED)
        time_ratio = self.our_seconds / self.their_seconds
        return (
            f"{self.name:40} {self.our_bytes:14,.0f} {self.their_bytes:14,.0f} {byte_ratio:7.2f} {time_ratio:7.2f}"
            f" {self.deviation:9.1e}"
        )


def compare_file(path: Path) -> PartitionerComparison:
    """Run a program on both ways; this process must not have started JAX."""
    import shardy_py as sdy
    from shardy_py.jax.host import use_devices
    from shardy_py.jax.unsharded import compile_unsharded, has_manual_computations

    (program,) = programs_in(path)
    text = program.make()
    result = sdy.propagate(text, like="jit")
    count = max((mesh.total_size for mesh in result.program.meshes.values()), default=1)
    use_devices(count)
    import jax
    import numpy
    from jaxlib import xla_client

    from shardy_py.frontends.mlir import parse_module
    from shardy_py.jax.deviations import compare_results
    from shardy_py.jax.executable import compile_bytecode
    from shardy_py.jax.figures import measure
    from shardy_py.jax.inputs import random_inputs
    from shardy_py.jax.modules import bytecode_of

    # Donated arguments could be used once only.
    ours = evolve(result.to_jax(), donated=frozenset())
    inputs = random_inputs(result.program, result.main)
    devices = tuple(jax.devices()[:count])
    openness = [True] * len(ours.in_types), [True] * len(ours.out_types)
    theirs = compile_bytecode(bytecode_of(parse_module(text)), devices, open_interface=openness)

    def placed(sharding: Any, array: Any) -> Any:
        known = jax.sharding.GSPMDSharding if hasattr(jax.sharding, "GSPMDSharding") else _gspmd_sharding()
        return jax.device_put(array, known(devices, xla_client.HloSharding.from_proto(sharding)))

    mine = [jax.device_put(array, sharding) for array, sharding in zip(inputs, ours.in_shardings, strict=True)]
    other = [placed(*pair) for pair in zip(theirs.get_parameter_shardings() or (), inputs, strict=True)]

    def run_theirs() -> Any:
        return theirs.execute_sharded(other).disassemble_into_single_device_arrays()

    found = [numpy.asarray(array) for array in ours.run(*mine)]
    if has_manual_computations(result.program):
        wanted = [
            numpy.asarray(
                jax.make_array_from_single_device_arrays(
                    type_.shape, placed(sharding, numpy.zeros(type_.shape, type_.dtype)).sharding, shards
                )
            )
            for type_, sharding, shards in zip(ours.out_types, theirs.get_output_shardings(), run_theirs(), strict=True)
        ]
    else:
        whole = compile_unsharded(text, semantics=result.registry)
        wanted = [numpy.asarray(array) for array in whole.run(*map(numpy.array, inputs))]
    our_seconds, their_seconds = _in_turns(
        lambda: jax.block_until_ready(ours.run(*mine)), lambda: jax.block_until_ready(run_theirs())
    )
    return PartitionerComparison(
        program.name,
        measure(ours).communication_bytes,
        measure(_Compiled(devices, theirs)).communication_bytes,
        our_seconds,
        their_seconds,
        max((item.relative for item in compare_results(found, wanted)), default=0.0),
    )


@frozen
class _Compiled:
    """A compiled module, as `measure` reads it."""

    devices: Sequence[Any]
    executable: Any


def _gspmd_sharding() -> Any:
    from jax._src.sharding_impls import GSPMDSharding

    return GSPMDSharding


def _in_turns(*runs: Callable[[], Any]) -> list[float]:
    """Return the median time of each of some functions, which run in turns."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(_TURNS):
        for number, run in enumerate(runs):
            start = perf_counter()
            run()
            times[number].append(perf_counter() - start)
    return [median(item) for item in times]


def compare_all(paths: Sequence[Path]) -> Iterator[PartitionerComparison | str]:
    """Yield the comparison of each program, or why there is none."""
    files = [file for path in paths for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    for file in files:
        command = [sys.executable, "-m", "benchmarks.partitioners", "--one", str(file)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            yield f"{file.name:40} took more than {_SECONDS:.0f} s"
            continue
        lines = done.stdout.strip().splitlines()
        if done.returncode == 0 and lines:
            yield PartitionerComparison(**json.loads(lines[-1]))
        else:
            yield f"{file.name:40} {(done.stderr.strip().splitlines() or ['no answer'])[-1][:100]}"


def main(arguments: Sequence[str]) -> int:
    """Print a row per program, then the share of programs that send no more, and the geometric means."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(asdict(compare_file(Path(arguments[1])))))
        return 0
    found = []
    head = f"{'program':40} {'our bytes':>14} {'their bytes':>14} {'bytes':>7} {'time':>7} {'deviation':>9}"
    print(head, flush=True)
    for item in compare_all([Path(argument) for argument in arguments]):
        print(item, flush=True)
        found += [item] if isinstance(item, PartitionerComparison) else []
    byte_ratio = _mean([(item.our_bytes + _ADDED) / (item.their_bytes + _ADDED) for item in found])
    time_ratio = _mean([item.our_seconds / item.their_seconds for item in found])
    share = sum(item.our_bytes <= item.their_bytes for item in found) / max(1, len(found))
    print(f"{len(found)} programs, {share:.0%} of which send no more than XLA's partitioner")
    print(f"geometric means: bytes {byte_ratio:.2f}, time {time_ratio:.2f}")
    return 0 if found else 1


def _mean(ratios: Sequence[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios)) if ratios else 0.0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
