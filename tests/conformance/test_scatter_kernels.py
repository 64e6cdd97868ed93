"""Scatter kernels are XLA's, and every stage, the host's machine code and the PTX compute what XLA:CPU does."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="PTX needs the extra 'codegen'")

from xdsl.dialects import builtin, func

from shardy_py.kernels.dialect.ops import LoopOp
from shardy_py.kernels.dialect.text import parse_kernel_module, print_kernel_module
from shardy_py.kernels.fusion.choose import Choice, slices_of
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.kernels.fusion.scatters import root_scatter
from shardy_py.kernels.kernel import Kernel, emit
from shardy_py.kernels.requirements import find_libdevice
from shardy_py.kernels.run.kernel import run_kernel
from tests.conformance.test_kernel_ptx import JUDGE, judge, widest
from tests.conformance.test_kernels import FILE, IGNORED, kernels, name_of, op_counts
from tests.conformance.test_moving_kernels import initial_module, is_same_map
from tests.conformance.xla_cpu import DTYPES, is_equal, random_array, run_on_xla

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
]

# Every fourth kernel runs at some stages, or all of them at each one if the environment says so.
RUNS_ALL = "SHARDY_ALL_PROGRAMS" in os.environ
STEP = 1 if RUNS_ALL else 4
FEW = ("lower-loops-to-scf", "optimize-loops", "scf-to-cf")


def scatters() -> Iterator[tuple[Mapping[str, Any], Fusion, Choice]]:
    """Every scatter kernel of the file."""
    return (item for item in kernels() if item[0]["emitter"] == "scatter")


def test_ops_of_scatter_kernels() -> None:
    """All functions, those of arguments that a region leaves unused among them, have XLA's ops in every kernel."""
    wrong, seen = {}, 0
    for kernel, fusion, choice in scatters():
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
    assert wrong == {}
    assert seen > 3


def test_maps_of_scatter_kernels() -> None:
    """The maps of all loops have XLA's values."""
    for kernel, fusion, choice in scatters():
        loops = [str(op.map) for op in initial_module(fusion, choice).walk() if isinstance(op, LoopOp)]
        theirs = [loop["map"] for loop in kernel["initial"]["loops"]]
        assert loops == list(map(str, emit(fusion).maps))
        assert len(loops) == len(theirs), name_of(kernel)
        assert all(map(is_same_map, loops, theirs)), name_of(kernel)


def arrays_of(fusion: Fusion) -> list[Any]:
    """Arrays that keep what the scatter promises, of numbers whose sums and products are exact in every order."""
    rng = np.random.default_rng(11)
    op = root_scatter(fusion).op
    collected = []
    for value in fusion.parameters:
        array = random_array(shape_of(value), element_type_of(value), rng)
        if array.dtype.kind not in "biu":
            array = np.where(array < 0, -1, 1).astype(array.dtype)
        if value is op.operands[1]:
            array = indices(op, array, rng)
        collected.append(array)
    return collected


def indices(op: Any, like: Any, rng: np.random.Generator) -> Any:
    """Places of windows: each once where the scatter says so or assigns, in order where it says so; some outside."""
    size, count = shape_of(op.operands[0])[0], like.shape[0]
    is_once = op.attributes.get("unique_indices") or not list(op.regions[0].blocks[0].ops)[:-1]
    places = rng.permutation(size)[:count] if is_once else rng.integers(-2, size + 2, count)
    actual = like.copy()
    actual[:, 0] = np.sort(places) if op.attributes.get("indices_are_sorted") else places
    return actual


def outputs_of(fusion: Fusion) -> list[tuple[Any, Any]]:
    """Shape and dtype of every result."""
    return [(shape_of(root), np.dtype(DTYPES[element_type_of(root)])) for root in fusion.roots]


def test_stages_compute_what_xla_computes() -> None:
    """Stages give XLA:CPU's bits, without a race or an access outside of memory."""
    wrong: list[str] = []
    for golden, fusion, choice in islice(scatters(), None, None, STEP):
        kernel, arrays = emit(fusion), arrays_of(fusion)
        (want,) = run_on_xla(golden["fused_stablehlo"], arrays)
        slices, outputs, name = slices_of(fusion, choice), outputs_of(fusion), name_of(golden)
        (got,) = run_kernel(initial_module(fusion, choice), kernel.launch, arrays, outputs, slices=slices)
        wrong += [] if is_equal(want, got) else [f"{name}: initial"]
        wrong += wrong_stages(kernel, arrays, want, name)
    assert wrong == []


def wrong_stages(kernel: Kernel, arrays: list[Any], want: Any, name: str) -> list[str]:
    """The stages of a kernel that compute something else."""
    slices, outputs = slices_of(kernel.fusion, kernel.choice), outputs_of(kernel.fusion)
    collected: list[str] = []

    def check(pass_name: str, module: builtin.ModuleOp) -> None:
        if RUNS_ALL or pass_name in FEW:
            (got,) = run_kernel(module, kernel.launch, arrays, outputs, stage=pass_name, slices=slices)
            collected.extend([] if is_equal(want, got) else [f"{name}: {pass_name}"])

    kernel.module(check)
    return collected


def test_the_host_computes_what_xla_computes() -> None:
    """Machine code of every kernel gives XLA:CPU's bits."""
    wrong = []
    for golden, fusion, _ in scatters():
        arrays = arrays_of(fusion)
        (want,) = run_on_xla(golden["fused_stablehlo"], arrays)
        (got,) = emit(fusion).run(*arrays, on="host")
        wrong += [] if is_equal(want, got) else [name_of(golden)]
    assert wrong == []


@pytest.mark.skipif(JUDGE.name != "judge", reason="the emulator of PTX is not beside the reference's kernels")
@pytest.mark.skipif(find_libdevice() is None, reason="libdevice is not installed (nvidia-cuda-nvcc-cu12)")
def test_ptx_computes_what_xla_computes() -> None:
    """In the emulator kernels give XLA:CPU's bits; sums of f32 are atomic additions; accesses are as wide as XLA's."""
    for golden, fusion, choice in scatters():
        kernel, name = emit(fusion), name_of(golden)
        memory = judge("facts").ptx_facts(kernel.ptx, kernel.name)["memory"]
        for kind in ("ld.global", "st.global"):
            assert widest(memory, kind) >= widest(golden["ptx"]["memory"], kind), name
        if "sc_add_f32" in name:
            assert [kind for kind in memory if kind.startswith(("atom", "red"))] == ["atom.global.add.f32"], memory
        arrays = arrays_of(fusion)
        (want,) = run_on_xla(golden["fused_stablehlo"], arrays)
        buffers = [np.array(array) for array in arrays]
        place = slices_of(fusion, choice)[-1]
        judge("ptxrun").run(
            kernel.ptx, kernel.name, kernel.launch.blocks, kernel.launch.threads, [*buffers, buffers[place]]
        )
        assert is_equal(want, buffers[place]), name
