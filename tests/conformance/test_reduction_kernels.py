"""Reduction kernels before any pass are XLA's: functions, ops, maps, tiles of shared memory and barriers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from xdsl.dialects import builtin, func

from shardy_py.kernels.device import H100
from shardy_py.kernels.dialect.memory_ops import AllocateSharedOp
from shardy_py.kernels.dialect.ops import LoopOp
from shardy_py.kernels.dialect.text import parse_kernel_module, print_kernel_module
from shardy_py.kernels.elemental.functions import FunctionEmitter
from shardy_py.kernels.entry.entries import entry_function
from shardy_py.kernels.fusion.choose import Choice
from shardy_py.kernels.fusion.fusion import Fusion
from shardy_py.kernels.kernel import emit
from shardy_py.kernels.launch.launches import launch_of
from shardy_py.kernels.partition import partition
from tests.conformance.test_kernels import FILE, IGNORED, REQUIRED, in_both_forms, kernels, name_of, op_counts

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
]


def reductions(form: str = "stablehlo") -> Iterator[tuple[Mapping[str, Any], Fusion, Choice]]:
    """Every reduction kernel of the file."""
    return (item for item in kernels(form) if item[0]["emitter"] == "reduction")


def initial_module(fusion: Fusion, choice: Choice) -> builtin.ModuleOp:
    """The module of a kernel before any pass."""
    functions = FunctionEmitter(fusion, partition(fusion, choice))
    entry = entry_function(functions, choice, launch_of(fusion, choice, H100), H100)
    return builtin.ModuleOp([entry, *functions.functions()])


@in_both_forms
def test_ops_of_reduction_kernels(form: str) -> None:
    """All functions, the entry function among them, have XLA's ops in 98 % of the kernels; their text reads back."""
    wrong, seen = {}, 0
    for kernel, fusion, choice in reductions(form):
        seen += 1
        module = initial_module(fusion, choice)
        module.verify()
        text = print_kernel_module(module)
        assert print_kernel_module(parse_kernel_module(text)) == text
        ours = [op_counts(function) for function in module.body.block.ops if isinstance(function, func.FuncOp)]
        theirs = [
            {name: count for name, count in function["ops"].items() if name not in IGNORED}
            for function in kernel["initial"]["functions"]
        ]
        if sorted(map(sorted, map(dict.items, ours))) != sorted(map(sorted, map(dict.items, theirs))):
            wrong[name_of(kernel)] = (ours, theirs)
    assert len(wrong) <= (1 - REQUIRED) * seen, wrong
    assert seen > 20


@in_both_forms
def test_maps_of_reduction_kernels(form: str) -> None:
    """The map of the loop over elements is XLA's, but for the blocks along z: the dump has one too many."""
    wrong = {}
    for kernel, fusion, choice in reductions(form):
        module = initial_module(fusion, choice)
        groups = launch_of(fusion, choice, H100).blocks[2]
        loops = [str(op.map) for op in module.walk() if isinstance(op, LoopOp)]
        theirs = [
            loop["map"].replace(f"bl_z in [0, {groups}]", f"bl_z in [0, {groups - 1}]")
            for loop in kernel["initial"]["loops"]
        ]
        if loops != theirs or list(map(str, emit(fusion).maps)) != loops:
            wrong[name_of(kernel)] = (loops, theirs)
    assert wrong == {}


@in_both_forms
def test_shared_memory_of_reduction_kernels(form: str) -> None:
    """Tiles of shared memory have XLA's types in all kernels, and are as many."""
    wrong = {}
    for kernel, fusion, choice in reductions(form):
        module = initial_module(fusion, choice)
        ours = Counter(str(op.output.type) for op in module.walk() if isinstance(op, AllocateSharedOp))
        if ours != Counter(kernel["initial"]["shared"]):
            wrong[name_of(kernel)] = (ours, kernel["initial"]["shared"])
    assert wrong == {}
