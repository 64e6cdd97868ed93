"""Run local programs on host devices, compare with one device, and print a JSON object a line for each.

Started by test_local_programs.py in a process of its own: JAX counts its devices once, and XLA may end the process.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import shardy_py as sdy
from shardy_py.errors import ShardyError
from shardy_py.ir.graph.types import TensorType
from shardy_py.jax.deviations import Deviation, compare_results
from shardy_py.jax.host import use_devices
from shardy_py.jax.inputs import random_inputs
from shardy_py.jax.local.replicas import as_replicas
from shardy_py.jax.local.run_worker import run
from shardy_py.jax.unsharded import compile_unsharded, has_manual_computations, without_shardings
from shardy_py.jax.unsupported_programs import refuse_what_cannot_run
from tests.conformance.plain_reference import with_plain_reductions
from tests.conformance.run_program import random_results

DEVICES = 16


def check(text: str) -> dict[str, Any]:
    """Return what became of a program."""
    result = sdy.propagate(text, explicit_collectives=True)
    program = result.program
    if max((mesh.total_size for mesh in program.meshes.values()), default=1) > DEVICES:
        return {"status": "too many devices"}
    values = [value for op in program.walk() for value in op.results if isinstance(value.type, TensorType)]
    if not all(value.type.is_static for value in values):
        return {"status": "dynamic"}
    try:
        local = result.local()
        refuse_what_cannot_run(local.program)
    except ShardyError as error:
        return {"status": "refused", "reason": error.diagnostics[0].show("error").splitlines()[0]}
    gathered = Counter(item.op for item in local.warnings if item.code == "gathered-op")
    answer = {"gathered": dict(gathered), "ops": sum(1 for _ in local.program.walk())}
    inputs = random_inputs(program, result.main)
    shards = [
        port.split(array, local.device_count, number)
        for number, (port, array) in enumerate(zip(local.arguments, inputs, strict=True))
    ]
    try:
        expected = _whole(text, result, inputs)
    except Exception as error:
        return answer | {"status": "no reference", "reason": str(error).splitlines()[0][:200]}
    # Random numbers of no key differ between runs, and between devices.
    compared = [number for number in range(len(local.results)) if number not in random_results(program)]
    try:
        actual = run(as_replicas(with_plain_reductions(local.text)), local.device_count, shards)
        joined = [local.results[number].join(actual[number], number) for number in compared]
    except Exception as error:
        return answer | {"status": "failed", "reason": str(error).splitlines()[0][:300]}
    deviations = compare_results(joined, [expected[number] for number in compared])
    if "bf16" in text and not all(item.is_within for item in deviations):
        deviations = _nearer(deviations, compare_results(joined, _wide(text, result, inputs, joined, compared)))
    apart = [f"{number}: {item}" for number, item in zip(compared, deviations, strict=True) if not item.is_within]
    largest = max((item.relative for item in deviations), default=0.0)
    return answer | {"status": "differs" if apart else "equal", "apart": apart[:5], "largest": largest}


def _whole(text: str, result: sdy.Result, inputs: list[Any]) -> list[Any]:
    """Return the results of the program without shardings."""
    if has_manual_computations(result.program) or "manual_computation" in text:
        return [np.asarray(value) for value in compile_unsharded(text, semantics=result.registry)(*inputs)]
    plain = as_replicas(without_shardings(with_plain_reductions(text)))
    return [parts[0] for parts in run(plain, 1, [array[None] for array in inputs])]


def _wide(text: str, result: sdy.Result, inputs: list[Any], collected: list[Any], compared: list[int]) -> list[Any]:
    """Return some results of the program in f32: XLA adds numbers of bf16 one by one, and small ones get lost."""
    arrays = [array.astype(np.float32) if array.dtype.name == "bfloat16" else array for array in inputs]
    expected = _whole(text.replace("bf16", "f32"), result, arrays)
    return [expected[number].astype(item.dtype) for number, item in zip(compared, collected, strict=True)]


def _nearer(ones: list[Deviation], others: list[Deviation]) -> list[Deviation]:
    """Return the smaller deviation of each pair."""
    return [min(pair, key=lambda item: (item.nans, item.relative)) for pair in zip(ones, others, strict=True)]


def main() -> None:
    """Check the programs that are named on the command line."""
    use_devices(DEVICES)
    for name in sys.argv[1:]:
        start = perf_counter()
        print(json.dumps({"start": name}), flush=True)
        try:
            answer = check(gzip.decompress(Path(name).read_bytes()).decode())
        except ShardyError as error:
            answer = {"status": "refused", "reason": error.diagnostics[0].show("error").splitlines()[0]}
        except Exception as error:
            answer = {"status": "broken", "reason": f"{type(error).__name__}: {error}"[:300]}
        seconds = round(perf_counter() - start, 1)
        print(json.dumps({"name": name, "seconds": seconds, **answer}), flush=True)


if __name__ == "__main__":
    main()
