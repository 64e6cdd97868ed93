"""Kernels agree with those that XLA makes for a GPU: emitter, launch, functions, maps."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from xdsl.dialects import builtin, func

from shardy_py.kernels import read_fusion
from shardy_py.kernels.device import H100
from shardy_py.kernels.dialect.text import parse_kernel_module, print_kernel_module
from shardy_py.kernels.elemental.functions import FunctionEmitter
from shardy_py.kernels.entry.entries import loop_entry
from shardy_py.kernels.fusion.choose import Choice, choose
from shardy_py.kernels.fusion.fusion import Fusion
from shardy_py.kernels.launch.grid import loop_map
from shardy_py.kernels.launch.launches import launch_of
from shardy_py.kernels.partition import partition
from shardy_py.kernels.passes.pipeline import LOOP_PIPELINE
from tests.unit.kernels.module_texts import run_loop_pipeline

DEFAULT = Path(__file__).parents[3] / "shared" / "reference" / "xla_gpu" / "kernels.json"
FILE = Path(os.environ.get("SHARDY_KERNELS", DEFAULT))
REQUIRED = 0.98

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
]


@cache
def kernels(form: str = "stablehlo") -> tuple[tuple[Mapping[str, Any], Fusion, Choice], ...]:
    """Every kernel of the file, with our fusion and the choice of an emitter.

    Args:
        form: The form in which the fusion is read: ``stablehlo`` or ``hlo``.
    """
    collected = []
    for kernel in json.loads(FILE.read_text())["fusions"]:
        if kernel[f"fused_{form}"] is not None:
            fusion = read_fusion(kernel[f"fused_{form}"])
            collected.append((kernel, fusion, choose(fusion, H100)))
    return tuple(collected)


in_both_forms = pytest.mark.parametrize("form", ["stablehlo", "hlo"])


def name_of(kernel: Mapping[str, Any]) -> str:
    """The name of a kernel."""
    return f"{kernel['case']}/{kernel['fusion']}"


@in_both_forms
def test_emitters(form: str) -> None:
    """Every fusion gets XLA's emitter."""
    actual = {name_of(kernel): (choice.kind.value, kernel["emitter"]) for kernel, _, choice in kernels(form)}
    assert {name: both for name, both in actual.items() if both[0] != both[1]} == {}
    assert len(actual) > 50


@in_both_forms
def test_launches(form: str) -> None:
    """Every kernel has XLA's blocks and threads."""
    wrong = {}
    for kernel, fusion, choice in kernels(form):
        launch = launch_of(fusion, choice, H100)
        ours = {"blocks": list(launch.blocks), "threads": list(launch.threads)}
        if ours != kernel["launch"]:
            wrong[name_of(kernel)] = (ours, kernel["launch"])
    assert wrong == {}


@in_both_forms
def test_loop_maps(form: str) -> None:
    """The map from threads and blocks to elements is XLA's, in every loop."""
    wrong = {}
    for kernel, fusion, choice in kernels(form):
        if kernel["emitter"] != "loop":
            continue
        ours = str(loop_map(launch_of(fusion, choice, H100), fusion.roots[0].shape))
        if ours != kernel["initial"]["loops"][0]["map"]:
            wrong[name_of(kernel)] = (ours, kernel["initial"]["loops"][0]["map"])
    assert wrong == {}


def signatures(kernel: Mapping[str, Any]) -> Iterator[tuple[tuple[int, ...], int]]:
    """The shape of the index and the number of results of the functions over tensors, but for entry and epilogues."""
    for function in kernel["initial"]["functions"]:
        is_element = not function["entry"] and "__epilogue__" not in function["name"]
        scalars_only = function["args"] and not any(type_.startswith("tensor") for type_ in function["args"])
        if is_element and not scalars_only:
            yield tuple(bounds[1] + 1 for bounds in function["ranges"] if bounds), len(function["results"])


@in_both_forms
def test_functions(form: str) -> None:
    """Fusions are partitioned into XLA's functions in 98 % of the cases."""
    wrong = {}
    for kernel, fusion, choice in kernels(form):
        emitted = partition(fusion, choice).emitted(fusion)
        ours = sorted((function.shape, len(function.roots)) for function in emitted)
        if ours != sorted(signatures(kernel)):
            wrong[name_of(kernel)] = (ours, sorted(signatures(kernel)))
    assert len(wrong) <= (1 - REQUIRED) * len(kernels(form)), wrong


# What the dump has for its own loops over threads, and markers without an effect.
IGNORED = ("scf.forall", "xla.workgroup_id", "tensor.parallel_insert_slice", "xla.is_reduction", "func.return")
MOVED = ("apply_indexing", "atomic_rmw", "loop", "predicated_extract", "predicated_insert", "pure_call", "yield")


def op_counts(function: func.FuncOp) -> dict[str, int]:
    """The number of ops of each kind, by today's names."""
    counts: Counter[str] = Counter()
    for op in function.walk():
        prefix, _, name = op.name.partition(".")
        counts[f"xla.{name}" if prefix == "xla_gpu" and name in MOVED else op.name] += op is not function
    return {name: count for name, count in counts.items() if count and name not in IGNORED}


@in_both_forms
def test_ops_of_loop_kernels(form: str) -> None:
    """The functions of loop kernels have XLA's ops in 98 % of the kernels, and their text reads back."""
    wrong, seen = {}, 0
    for kernel, fusion, choice in kernels(form):
        if kernel["emitter"] != "loop":
            continue
        seen += 1
        functions = FunctionEmitter(fusion, partition(fusion, choice))
        module = builtin.ModuleOp([loop_entry(functions, launch_of(fusion, choice, H100)), *functions.functions()])
        module.verify()
        text = print_kernel_module(module)
        assert print_kernel_module(parse_kernel_module(text)) == text
        emitted = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
        ours = [op_counts(function) for function in emitted if "xla.entry" not in function.attributes]
        theirs = [
            {name: count for name, count in function["ops"].items() if name not in IGNORED}
            for function in kernel["initial"]["functions"]
            if not function["entry"]
        ]
        if sorted(map(sorted, map(dict.items, ours))) != sorted(map(sorted, map(dict.items, theirs))):
            wrong[name_of(kernel)] = (ours, theirs)
    assert len(wrong) <= (1 - REQUIRED) * seen, wrong


# The stages of the reference by the number of our pass after which they stand; the last one is what decides.
NUMBERS = {stage.item.name: number for number, stage in enumerate(LOOP_PIPELINE)}
STAGES = {
    NUMBERS["inline"] + 1: "after_inline",
    NUMBERS["lower-loops-to-scf"]: "after_loops_to_scf",
    NUMBERS["flatten-tensors"]: "after_flatten",
    NUMBERS["optimize-loops"]: "after_unroll",
}
COUNTED = ("scf.for", "scf.if", "tensor.extract", "tensor.insert", "vector.transfer_read", "vector.transfer_write")


def test_stages_of_loop_kernels() -> None:
    """After inlining, lowering loops, flattening and unrolling, loop kernels branch, read and write as XLA's do.

    Reads and writes and their vectors are equal in 98 % of the kernels; how many index maps are left is not compared.
    """
    wrong: Counter[str] = Counter()
    vectors, seen = {}, 0
    for kernel, fusion, choice in kernels():
        if kernel["emitter"] != "loop":
            continue
        seen += 1
        functions = FunctionEmitter(fusion, partition(fusion, choice))
        module = builtin.ModuleOp([loop_entry(functions, launch_of(fusion, choice, H100)), *functions.functions()])

        def compare(
            _: str,
            current: builtin.ModuleOp,
            kernel: Mapping[str, Any] = kernel,
            numbers: Iterator[int] = count(),  # noqa: B008
        ) -> None:
            number = next(numbers)
            stage = STAGES.get(number)
            if stage is not None:
                ours = Counter(op.name for op in current.walk() if op.name in COUNTED)
                theirs = {name: count for name, count in kernel["stages"][stage].items() if name in COUNTED}
                wrong[stage] += dict(ours) != theirs
            if number == NUMBERS["vectorize-loads-stores"]:
                ours = Counter(
                    str(op.results[0].type if op.name.endswith("read") else op.operands[0].type)
                    for op in current.walk()
                    if op.name.startswith("vector.transfer")
                )
                if sorted(map(list, ours.items())) != sorted(kernel["stages"]["after_vectorize"]["vectors"]):
                    vectors[name_of(kernel)] = (ours, kernel["stages"]["after_vectorize"]["vectors"])

        run_loop_pipeline(module, compare)
        module.verify()
    assert len(vectors) <= (1 - REQUIRED) * seen, vectors
    assert all(count <= (1 - REQUIRED) * seen for count in wrong.values()), (wrong, seen)
