"""Run the reference's kernels on a GPU, and compare the results with XLA's there.

    python -m tests.conformance.run_kernels_on_gpu emit kernels.json kernels.jsonl
    python -m tests.conformance.run_kernels_on_gpu run kernels.jsonl results.jsonl
    python -m tests.conformance.run_kernels_on_gpu table results.jsonl

The first command needs the extras ``stablehlo`` and ``codegen`` and no GPU; the second one a GPU, cuda-bindings and a
JAX that compiles for it, and neither xDSL nor llvmlite. So they can run on different machines.
"""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cuda,cpu")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from shardy_py.errors import ShardyError
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.run.device import DeviceKernel
from shardy_py.layout.numpy_arrays import numpy_dtype

Kernel = Mapping[str, Any]

TOLERANCES = {"bfloat16": 4e-2, "float16": 6e-3, "float8_e4m3fn": 1e-1}
"""By element type, how far a result may be from XLA's, as a share of the number; of others 3e-4."""
OF_LARGEST = 0.1
"""What a sum may be off beside that, in these shares of the largest element."""
COMBINES = re.compile(r"stablehlo\.(add|multiply|maximum|minimum|and|or|xor)\b")


def emitted(text: str) -> dict[str, Any]:
    """The kernel of a fusion, as JSON."""
    from shardy_py.kernels import emit, read_fusion
    from shardy_py.kernels.fusion.choose import slices_of
    from shardy_py.kernels.fusion.fusion import element_type_of, shape_of

    fusion = read_fusion(text)
    kernel = emit(fusion)

    def arrays(values: Sequence[Any]) -> list[Any]:
        return [[shape_of(value), element_type_of(value), fusion.layout_of(value)[::-1]] for value in values]

    return {
        "kernel": kernel.name,
        "emitter": kernel.choice.kind.value,
        "blocks": kernel.launch.blocks,
        "threads": kernel.launch.threads,
        "slices": slices_of(fusion, kernel.choice),
        "parameters": arrays(fusion.parameters),
        "results": arrays(fusion.roots),
        "ptx": kernel.ptx,
        "text": text,
    }


def emit_all(source: Path, target: Path) -> int:
    """Write a line for every kernel of the reference; return how many are refused."""
    refused = 0
    with target.open("w") as file:
        for golden in json.loads(source.read_text())["fusions"]:
            name = f"{golden['case']}/{golden['fusion']}"
            try:
                file.write(json.dumps({"name": name, **emitted(golden["fused_stablehlo"])}) + "\n")
            except ShardyError as error:
                print(f"{name}: {error}", file=sys.stderr)
                refused += 1
    return refused


def random_arrays(kernel: Kernel) -> list[Any]:
    """Arrays for the parameters of a kernel: floats around 1, small integers, which may be indices.

    Where a scatter may not meet an element twice, or what is left there depended on the order, all integers differ.
    """
    rng = np.random.default_rng(len(kernel["text"]))
    is_scatter = kernel["emitter"] == "scatter"
    differ = is_scatter and ("unique_indices = true" in kernel["text"] or not COMBINES.search(kernel["text"]))
    return [_random_array(shape, numpy_dtype(type_), rng, differ=differ) for shape, type_, _ in kernel["parameters"]]


def _random_array(shape: Sequence[int], dtype: Any, rng: np.random.Generator, *, differ: bool) -> Any:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if "int" in dtype.name:
        least = 0 if dtype.kind == "u" else -4
        actual = np.arange(np.prod(shape, dtype=int)) if differ else rng.integers(least, 40, shape)
        return actual.reshape(shape).astype(dtype)
    numbers = rng.normal(0, 1.5, shape)
    if dtype.kind == "c":
        numbers = numbers + 1j * rng.normal(0, 1.5, shape)
    return np.asarray(numbers).astype(dtype)


def on_xla(text: str, arrays: Sequence[Any]) -> list[Any]:
    """What a module gives on XLA and the GPU."""
    import jax
    from jax._src import compiler
    from jax._src.interpreters import mlir as jax_mlir
    from jaxlib import _jax
    from jaxlib.mlir import ir

    with jax.enable_x64(True):
        device = jax.devices("cuda")[0]
        with jax_mlir.make_ir_context():
            code = jax_mlir.module_to_bytecode(ir.Module.parse(text))
        options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
        program = device.client.compile_and_load(code, _jax.DeviceList((device,)), options)
        results = program.execute_sharded([jax.device_put(array, device) for array in arrays])
        return [np.asarray(parts[0]) for parts in results.disassemble_into_single_device_arrays()]


def on_gpu(kernel: Kernel, arrays: Sequence[Any]) -> tuple[list[Any], float]:
    """The results of our kernel on the GPU, and its time in seconds."""
    launch = Launch(tuple(kernel["blocks"]), tuple(kernel["threads"]))
    loaded = DeviceKernel(kernel["ptx"], kernel["kernel"], launch, kernel["slices"])
    inputs = [array.transpose(order) for array, (_, _, order) in zip(arrays, kernel["parameters"], strict=True)]
    outputs = [([shape[number] for number in order], numpy_dtype(type_)) for shape, type_, order in kernel["results"]]
    actual = zip(loaded.run(inputs, outputs), kernel["results"], strict=True)
    results = [array.transpose(np.argsort(order)) for array, (_, _, order) in actual]
    return results, loaded.time(inputs, outputs).seconds


def distance(kernel: Kernel, expected: Sequence[Any], actual: Sequence[Any]) -> float:
    """How far results are from XLA's, in units of what is allowed."""
    is_sum = kernel["emitter"] in ("reduction", "scatter") or "reduce" in kernel["text"]
    return max(_distance(want, got, is_sum=is_sum) for want, got in zip(expected, actual, strict=True))


def _distance(want: Any, got: Any, *, is_sum: bool) -> float:
    if want.dtype.kind == "b" or "int" in want.dtype.name:
        return float("inf") if (want != got).any() else 0.0
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    left, right = np.asarray(want).astype(wide), np.asarray(got).astype(wide)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    largest = np.abs(left[np.isfinite(left)]).max(initial=0) if is_sum else 0
    with np.errstate(all="ignore"):
        allowed = (1e-3 + np.abs(left) + OF_LARGEST * largest) * TOLERANCES.get(want.dtype.name, 3e-4)
        apart = np.where(same, 0, np.abs(left - right) / allowed)
    return float("inf") if np.isnan(apart).any() else float(apart.max(initial=0))


def measured(kernel: Kernel) -> dict[str, Any]:
    """What became of a kernel on the GPU: how far it is from XLA's, and its time."""
    collected: dict[str, Any] = {key: kernel[key] for key in ("name", "emitter", "blocks", "threads")}
    arrays = random_arrays(kernel)
    try:
        results, collected["seconds"] = on_gpu(kernel, arrays)
        collected["distance"] = distance(kernel, on_xla(kernel["text"], arrays), results)
    except Exception as error:  # a kernel that fails is a line of the report
        collected["error"] = f"{type(error).__name__}: {error}"[:400]
    return collected


def run_all(source: Path, target: Path) -> None:
    """Run the kernels of a file, and write a line for each."""
    with target.open("w") as file:
        for line in source.read_text().splitlines():
            file.write(json.dumps(measured(json.loads(line))) + "\n")
            file.flush()


def table(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line per emitter: kernels, right ones, and their times."""
    by_emitter: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for result in results:
        by_emitter[result["emitter"]].append(result)
    yield "| emitter | kernels | XLA's results | time in us: median | longest |"
    yield "|---|---|---|---|---|"
    for emitter, actual in sorted(by_emitter.items()):
        right = sum(result.get("distance", float("inf")) <= 1 for result in actual)
        times = [result["seconds"] * 1e6 for result in actual if "seconds" in result] or [float("nan")]
        yield f"| {emitter} | {len(actual)} | {right} | {median(times):.1f} | {max(times):.1f} |"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["emit", "run", "table"])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path, nargs="?")
    options = parser.parse_args()
    if options.command == "emit":
        return 1 if emit_all(options.source, options.target) else 0
    if options.command == "run":
        run_all(options.source, options.target)
    lines = (options.target or options.source).read_text().splitlines()
    print("\n".join(table([json.loads(line) for line in lines])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
