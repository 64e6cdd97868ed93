"""Local programs against XLA's partitioner: bytes sent, processor times side by side, and the distance of the results.

    python -m benchmarks.partitioners [--seconds N] FILE_OR_FOLDER...

Each program runs in a process of its own, on host devices: as `Result.to_jax` runs it, propagated as `jax.jit` does,
and as XLA propagates and partitions the same module. Both run in turns in one process; the median counts. The results
are compared with those of one device, or, of a program with manual computations, with each other.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, evolve

from benchmarks.comparisons import (
    CompiledModule,
    PartitionerComparison,
    counts_what_is_sent,
    largest_deviation,
    print_comparisons,
    seconds_in_turns,
)
from benchmarks.programs.files import programs_in

_DONATES = r"(?:tf\.aliasing_output = \d+ : i32|jax\.buffer_donor = true)"
_DONATION = re.compile(rf"(?<={{){_DONATES}(?:, )?|, {_DONATES}")
"""The attributes of donated arguments, which could be used once only."""


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
    from shardy_py.jax.executable import compile_bytecode
    from shardy_py.jax.figures import measure
    from shardy_py.jax.inputs import random_inputs
    from shardy_py.jax.modules import bytecode_of

    ours = evolve(result.to_jax(), donated=frozenset())
    inputs = random_inputs(result.program, result.main)
    devices = tuple(jax.devices()[:count])
    openness = [True] * len(ours.in_types), [True] * len(ours.out_types)
    theirs = compile_bytecode(bytecode_of(parse_module(_DONATION.sub("", text))), devices, open_interface=openness)

    def placed(sharding: Any, array: Any) -> Any:
        known = jax.sharding.GSPMDSharding if hasattr(jax.sharding, "GSPMDSharding") else _gspmd_sharding()
        return jax.device_put(array, known(devices, xla_client.HloSharding.from_proto(sharding)))

    mine = [jax.device_put(array, sharding) for array, sharding in zip(inputs, ours.in_shardings, strict=True)]
    other = _placed_inputs(theirs, inputs, devices, placed)

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
    our_seconds, their_seconds = seconds_in_turns(
        lambda: jax.block_until_ready(ours.run(*mine)), lambda: jax.block_until_ready(run_theirs())
    )
    figures = measure(ours)
    return PartitionerComparison(
        program.name,
        figures.communication_bytes,
        measure(CompiledModule(devices, theirs)).communication_bytes,
        our_seconds,
        their_seconds,
        largest_deviation(found, wanted),
        counts_what_is_sent(result.cost(profile="xla-cpu"), figures),
    )


def _placed_inputs(
    executable: Any, inputs: Sequence[Any], devices: Sequence[Any], placed: Callable[[Any, Any], Any]
) -> list[Any]:
    """Return inputs where an executable of XLA wants them; that of a program without meshes names no shardings."""
    import jax

    shardings = executable.get_parameter_shardings()
    if shardings is None:
        return [jax.device_put(array, devices[0]) for array in inputs]
    return [placed(*pair) for pair in zip(shardings, inputs, strict=True)]


def _gspmd_sharding() -> Any:
    from jax._src.sharding_impls import GSPMDSharding

    return GSPMDSharding


def compare_all(paths: Sequence[Path], seconds: float) -> Iterator[PartitionerComparison | str]:
    """Yield the comparison of each program, or why there is none.

    Args:
        paths: Programs, and folders of them.
        seconds: The time that one program may take.
    """
    files = [file for path in paths for file in (sorted(path.glob("*.mlir*")) if path.is_dir() else [path])]
    for file in files:
        command = [sys.executable, "-m", "benchmarks.partitioners", "--one", str(file)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            yield f"{file.name:40} took more than {seconds:.0f} s"
            continue
        lines = done.stdout.strip().splitlines()
        if done.returncode == 0 and lines:
            yield PartitionerComparison(**json.loads(lines[-1]))
        else:
            yield f"{file.name:40} {(done.stderr.strip().splitlines() or ['no answer'])[-1][:100]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row per program, then the share of programs that send no more, and the geometric means."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.partitioners", description="Compare partitioners.")
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE_OR_FOLDER", help="programs of MLIR")
    parser.add_argument("--seconds", type=float, default=300.0, help="the time that one program may take")
    parser.add_argument("--one", action="store_true", help="compare one file in this process, and print JSON")
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(asdict(compare_file(options.paths[0]))))
        return 0
    return 0 if print_comparisons(compare_all(options.paths, options.seconds)) else 1


if __name__ == "__main__":
    sys.exit(main())
