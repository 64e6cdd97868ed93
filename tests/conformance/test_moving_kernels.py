"""Kernels of transposes, concatenates and updates in place are XLA's, and every stage computes what XLA:CPU does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from math import prod
from typing import Any

import numpy as np
import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from xdsl.dialects import builtin, func

from shardy_py.indexing import IndexingMap
from shardy_py.kernels.device import H100
from shardy_py.kernels.dialect.memory_ops import AllocateSharedOp
from shardy_py.kernels.dialect.ops import ApplyIndexingOp, LoopOp
from shardy_py.kernels.dialect.text import parse_kernel_module, print_kernel_module
from shardy_py.kernels.elemental.functions import FunctionEmitter
from shardy_py.kernels.entry.entries import entry_function
from shardy_py.kernels.fusion.choose import Choice, slices_of
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.kernels.kernel import emit
from shardy_py.kernels.launch.grid import GRID_NAMES
from shardy_py.kernels.launch.launches import launch_of
from shardy_py.kernels.partition import partition
from shardy_py.kernels.run.kernel import run_kernel
from tests.conformance.sample import sample
from tests.conformance.test_kernel_runs import difference, ops_of
from tests.conformance.test_kernels import FILE, IGNORED, REQUIRED, in_both_forms, kernels, name_of, op_counts
from tests.conformance.xla_cpu import DTYPES, random_array, run_on_xla
from tests.unit.kernels.module_texts import run_loop_pipeline

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
]

MOVING = ("transpose", "concatenate", "in_place_dynamic_update_slice")

# XLA asks for the ids of threads once more per loop, or has a loop over threads; it has a constant for every step.
NOT_COUNTED = (*IGNORED, "gpu.thread_id", "gpu.block_id", "scf.forall", "arith.constant")

# Kernels of more elements run after some passes only.
MOST_FOR_ALL_STAGES = 1 << 15
STEP = 3
FEW = ("lower-loops-to-scf", "flatten-tensors", "optimize-loops", "scf-to-cf")


def moving(form: str = "stablehlo") -> Iterator[tuple[Mapping[str, Any], Fusion, Choice]]:
    """Every kernel of these emitters."""
    return (item for item in kernels(form) if item[0]["emitter"] in MOVING)


def initial_module(fusion: Fusion, choice: Choice) -> builtin.ModuleOp:
    """The module of a kernel before any pass."""
    functions = FunctionEmitter(fusion, partition(fusion, choice))
    entry = entry_function(functions, choice, launch_of(fusion, choice, H100), H100)
    return builtin.ModuleOp([entry, *functions.functions()])


def counted(ops: Mapping[str, int]) -> dict[str, int]:
    """Numbers of ops without those that are not compared."""
    return {name: count for name, count in ops.items() if name not in NOT_COUNTED}


def entry_of(module: builtin.ModuleOp) -> func.FuncOp:
    """The entry function of a module."""
    (actual,) = (op for op in module.body.block.ops if "xla.entry" in op.attributes)
    assert isinstance(actual, func.FuncOp)
    return actual


def canonical_names(text: str) -> str:
    """A map with the default names of its variables."""
    return re.sub(r"\b(?:th|bl)_[xyz]\b", lambda match: f"d{GRID_NAMES.index(match[0])}", text)


def is_same_map(first: str, other: str) -> bool:
    """Whether two maps are equal: in their text, or in bounds and in all values of a sample."""
    if canonical_names(first) == canonical_names(other):
        return True
    maps = IndexingMap.parse(first), IndexingMap.parse(other)
    bounds = [[bound.interval for bound in map_.variables.values()] for map_ in maps]
    if bounds[0] != bounds[1] or len(maps[0].dims) != len(maps[1].dims):
        return False
    rng = np.random.default_rng(len(first))
    values = [rng.integers(item.lower, item.upper + 1, 10000) for item in bounds[0]]
    count = len(maps[0].dims)
    inside = [map_.holds(values[:count], values[count:]) for map_ in maps]
    cost = [map_.evaluate(values[:count], values[count:]) for map_ in maps]
    pairs = zip(*cost, strict=True)
    return bool(np.all(inside[0] == inside[1])) and all(np.all((a == b) | ~inside[0]) for a, b in pairs)


@in_both_forms
def test_ops(form: str) -> None:
    """All functions, the entry function and epilogues among them, have XLA's ops in 98 % of the kernels."""
    wrong, seen = {}, 0
    for kernel, fusion, choice in moving(form):
        seen += 1
        module = initial_module(fusion, choice)
        module.verify()
        text = print_kernel_module(module)
        assert print_kernel_module(parse_kernel_module(text)) == text
        functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
        ours = [counted(op_counts(function)) for function in functions]
        theirs = [counted(function["ops"]) for function in kernel["initial"]["functions"]]
        if sorted(map(sorted, map(dict.items, ours))) != sorted(map(sorted, map(dict.items, theirs))):
            wrong[name_of(kernel)] = (ours, theirs)
    assert len(wrong) <= (1 - REQUIRED) * seen, wrong
    assert seen > 10


@in_both_forms
def test_maps(form: str) -> None:
    """The maps of all loops, and all other maps, have XLA's values."""
    wrong = {}
    for kernel, fusion, choice in moving(form):
        module = initial_module(fusion, choice)
        loops = [str(op.map) for op in module.walk() if isinstance(op, LoopOp)]
        theirs = [loop["map"] for loop in kernel["initial"]["loops"]]
        assert loops == list(map(str, emit(fusion).maps))
        if len(loops) != len(theirs) or not all(map(is_same_map, loops, theirs)):
            wrong[name_of(kernel)] = (loops, theirs)
        others = [str(op.map) for op in module.walk() if isinstance(op, ApplyIndexingOp)]
        left = list(kernel["initial"]["apply_maps"])
        for text in others:
            place = next((number for number, other in enumerate(left) if is_same_map(text, other)), None)
            if place is None:
                wrong[name_of(kernel)] = (text, left)
                break
            left.pop(place)
    assert wrong == {}


@in_both_forms
def test_memory(form: str) -> None:
    """Tiles, barriers, and which arguments are the same memory or are read only, are XLA's."""
    wrong = {}
    for kernel, fusion, choice in moving(form):
        entry = entry_of(initial_module(fusion, choice))
        (golden,) = (function for function in kernel["initial"]["functions"] if function["entry"])
        assert entry.arg_attrs is not None
        ours = (
            [str(op.output.type) for op in entry.walk() if isinstance(op, AllocateSharedOp)],
            op_counts(entry).get("xla_gpu.sync_threads"),
            list(slices_of(fusion, choice)),
            ["xla.invariant" in item.data for item in entry.arg_attrs.data],
        )
        theirs = (
            kernel["initial"]["shared"],
            golden["ops"].get("xla_gpu.sync_threads"),
            *(golden["slices"], golden["invariant"]),
        )
        if ours != theirs:
            wrong[name_of(kernel)] = (ours, theirs)
    assert wrong == {}


def problems(kernel: Mapping[str, Any], fusion: Fusion, choice: Choice) -> Iterator[str]:
    """Yield the stages that compute something else than XLA:CPU, or that race."""
    rng = np.random.default_rng(5)
    arrays = [random_array(shape_of(value), element_type_of(value), rng) for value in fusion.parameters]
    outputs = [(shape_of(root), np.dtype(DTYPES[element_type_of(root)])) for root in fusion.roots]
    expected = run_on_xla(kernel["fused_stablehlo"], arrays)
    module = initial_module(fusion, choice)
    ops = ops_of(module)
    launch, slices = launch_of(fusion, choice, H100), slices_of(fusion, choice)
    is_small = max(prod(shape) for shape, _ in outputs) <= MOST_FOR_ALL_STAGES
    collected: list[str] = []
    before = ""

    def check(stage: str, current: builtin.ModuleOp) -> None:
        nonlocal before
        text = print_kernel_module(current)
        is_due, before = text != before, text
        if not is_due:
            return
        results = run_kernel(current, launch, arrays, outputs, stage=stage, slices=slices)
        for want, got in zip(expected, results, strict=True):
            if problem := difference(fusion, ops, want, got):
                collected.append(f"{name_of(kernel)} after {stage}: {problem}")

    numbers = count()

    def after_pass(pass_name: str, current: builtin.ModuleOp) -> None:
        number = next(numbers)
        if is_small or pass_name in FEW:
            check(f"{number} {pass_name}", current)

    check("initial", module)
    run_loop_pipeline(module, after_pass)
    yield from collected


def test_stages_compute_what_xla_computes() -> None:
    """Every stage of every kernel gives XLA:CPU's bits, but for functions of the real line, without a race."""
    wrong, seen = [], 0
    for kernel, fusion, choice in sample(moving(), STEP):
        seen += 1
        wrong += list(problems(kernel, fusion, choice))
    assert wrong == []
    assert seen > 15


def test_the_host_computes_what_xla_computes() -> None:
    """Machine code of every kernel gives XLA:CPU's results; barriers split it into phases."""
    wrong = {}
    for kernel, fusion, choice in sample(moving(), STEP):
        rng = np.random.default_rng(7)
        arrays = [random_array(shape_of(value), element_type_of(value), rng) for value in fusion.parameters]
        actual = emit(fusion).run(*arrays, on="host")
        ops = ops_of(initial_module(fusion, choice))
        for want, got in zip(run_on_xla(kernel["fused_stablehlo"], arrays), actual, strict=True):
            if problem := difference(fusion, ops, want, got):
                wrong[name_of(kernel)] = problem
    assert wrong == {}
