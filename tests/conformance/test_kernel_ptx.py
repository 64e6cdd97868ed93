"""PTX of loop kernels: right, without races and accesses outside of buffers, as wide and as short as XLA's."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="PTX needs the extra 'codegen'")

from shardy_py.kernels.device import H100
from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.fusion.fusion import element_type_of, shape_of
from shardy_py.kernels.kernel import Kernel, emit
from shardy_py.kernels.lower.literals import nvptx
from shardy_py.kernels.lower.llvm import llvm_text
from shardy_py.kernels.lower.machine import ptx_text
from shardy_py.kernels.requirements import find_libdevice
from tests.conformance.sample import sample
from tests.conformance.test_kernel_runs import difference, loop_module, ops_of
from tests.conformance.test_kernels import DEFAULT, FILE, kernels, name_of
from tests.conformance.xla_cpu import DTYPES, random_array, run_on_xla
from tests.unit.kernels.fusions import fusion_of
from tests.unit.kernels.integer_modules import LAUNCH, OPS, exact_elements, integer_module, integer_pairs
from tests.unit.kernels.module_texts import run_loop_pipeline

JUDGE = next((path for path in (FILE.parent / "judge", DEFAULT.parent / "judge") if path.exists()), DEFAULT.parent)
DYNAMIC = FILE.parent / "kernels_dynamic.json"

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
    pytest.mark.skipif(JUDGE.name != "judge", reason="the emulator of PTX is not beside the reference's kernels"),
    pytest.mark.skipif(find_libdevice() is None, reason="libdevice is not installed (nvidia-cuda-nvcc-cu12)"),
]

# Instructions that the emulator runs for one kernel at most; what is longer is named in the test's report.
MOST_WORK = 3e7
AS_WIDE = 0.98
MOST_OF_XLA = 1.1


def judge(name: str) -> ModuleType:
    """A module of the judge; what it sets in JAX when it is imported is as before afterwards."""
    import jax

    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, JUDGE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        is_wide = jax.config.jax_enable_x64
        try:
            spec.loader.exec_module(module)
        finally:
            jax.config.update("jax_enable_x64", is_wide)
    return sys.modules[name]


def reference(text: str, arrays: Sequence[Any]) -> list[Any]:
    """What the judge says that a module computes, in all widths."""
    import jax

    module = judge("expected")
    with jax.enable_x64(True):
        return list(module.reference(text, arrays))


def widest(memory: Mapping[str, int], prefix: str) -> int:
    """The bytes of the widest access of a kind."""

    def width(name: str) -> int:
        lanes = re.search(r"\.v(\d)", name)
        bits = re.search(r"(\d+)$", name)
        assert bits is not None
        return int(bits[1]) // 8 * (int(lanes[1]) if lanes else 1)

    return max((width(name) for name in memory if name.startswith(prefix)), default=0)


def ran(kernel: Kernel, arrays: list[Any]) -> tuple[list[Any], int]:
    """The results of a kernel in the emulator, and how many instructions it ran."""
    fusion = kernel.fusion
    results = [np.zeros(shape_of(root), np.dtype(DTYPES[element_type_of(root)])) for root in fusion.roots]
    stats: dict[str, int] = {}
    run = judge("ptxrun").run
    buffers = [*map(np.array, arrays), *results]
    run(kernel.ptx, kernel.name, kernel.launch.blocks, kernel.launch.threads, buffers, stats=stats)
    return results, stats["instructions"]


def test_the_judge_leaves_jax_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that other tests lower have the same types before and after the judge computes in 64 bits."""
    import jax

    monkeypatch.delitem(sys.modules, "expected", raising=False)
    text = "func.func public @main(%x: tensor<2xi64>) -> tensor<2xi64> {\n  return %x : tensor<2xi64>\n}"
    before = jax.config.jax_enable_x64
    (actual,) = reference(text, [np.array([1, 1 << 40])])
    assert actual.tolist() == [1, 1 << 40]
    assert jax.config.jax_enable_x64 == before


@pytest.mark.parametrize("bits", [8, 32, 64])
@pytest.mark.parametrize("op", OPS)
def test_ptx_of_integers_is_exact(op: str, bits: int) -> None:
    """Quotients, remainders, shifts and powers have the results of XLA at the borders, too."""
    left, right = integer_pairs(bits, seed=1)
    module = parse_kernel_module(integer_module(op, bits))
    run_loop_pipeline(module)
    ptx = ptx_text(llvm_text(module, LAUNCH, nvptx(has_libdevice=False)), "main", H100, None)
    result = np.zeros_like(left)
    judge("ptxrun").run(ptx, "main", LAUNCH.blocks, LAUNCH.threads, [left, right, result])
    np.testing.assert_array_equal(result, exact_elements(op, left, right, bits))


def test_powers_are_those_of_xla() -> None:
    """The last six bits of an exponent count in XLA, too."""
    type_ = f"tensor<{LAUNCH.threads[0]}xi32>"
    text = f"""func.func public @main(%x: {type_}, %y: {type_}) -> {type_} {{
      %0 = stablehlo.power %x, %y : {type_}
      return %0 : {type_}
    }}"""
    left, right = integer_pairs(32, seed=1)
    (actual,) = run_on_xla(text, [left, right])
    np.testing.assert_array_equal(actual, exact_elements("math.ipowi", left, right, 32))


@pytest.mark.parametrize("type_", ["i4", "ui4"])
def test_powers_of_four_bits_are_those_of_xla(type_: str) -> None:
    """All bits of an exponent count, also where it has no sign."""
    dtype = np.dtype({"i4": "int4", "ui4": "uint4"}[type_])
    pairs = np.arange(256).astype(np.int8)
    left, right = ((pairs >> shift & 15).astype(np.int8).astype(dtype) for shift in (4, 0))
    text = f"""func.func public @main(%x: tensor<256x{type_}>, %y: tensor<256x{type_}>) -> tensor<256x{type_}> {{
      %0 = stablehlo.power %x, %y : tensor<256x{type_}>
      return %0 : tensor<256x{type_}>
    }}"""
    (expected,) = run_on_xla(text, [left, right])
    (actual,) = emit(fusion_of(text)).run(left, right, on="host")
    np.testing.assert_array_equal(np.asarray(actual).astype(np.int8), expected.astype(np.int8))


def test_ptx_computes_what_xla_computes(record_property: Callable[[str, object], None]) -> None:
    """In the emulator every kernel is right and runs at most as many instructions as XLA's, in the median."""
    dynamic = json.loads(DYNAMIC.read_text()) if DYNAMIC.exists() else {}
    wrong: dict[str, str] = {}
    ratios, left_out = [], []
    for golden, fusion, choice in sample((item for item in kernels() if item[0]["emitter"] == "loop"), 3):
        kernel, name = emit(fusion), name_of(golden)
        facts = judge("facts").ptx_facts(kernel.ptx, kernel.name)
        work = np.prod(kernel.launch.blocks) * np.prod(kernel.launch.threads) * facts["instructions"]
        if work > MOST_WORK:
            left_out.append(name)
            continue
        text = golden["fused_stablehlo"]
        rng = np.random.default_rng(len(text))
        arrays = [random_array(shape_of(value), element_type_of(value), rng) for value in fusion.parameters]
        actual, instructions = ran(kernel, arrays)
        known = dynamic.get(f"{golden['case']}__{golden['fusion']}", {}).get("instructions")
        ratios += [instructions / known] if known else []
        ops = ops_of(loop_module(fusion, choice))
        for want, got in zip(run_on_xla(text, arrays), actual, strict=True):
            problem = difference(fusion, ops, want, got)
            if problem and judge("expected").compare(want, got, "loop", name) > 1:
                wrong[name] = problem
    record_property("left out by size", left_out)
    assert wrong == {}
    if ratios:
        record_property("instructions", (median(ratios), max(ratios)))
        assert median(ratios) <= MOST_OF_XLA


def test_ptx_is_as_wide_as_xlas(tmp_path: Path) -> None:
    """Loads and stores are as wide as XLA's in 98 % of the kernels, and ptxas takes all without a spill."""
    narrow, refused, seen = {}, {}, 0
    facts = judge("facts")
    for golden, fusion, _ in kernels():
        if golden["emitter"] != "loop":
            continue
        seen += 1
        kernel, name = emit(fusion), name_of(golden)
        memory, theirs = facts.ptx_facts(kernel.ptx, kernel.name)["memory"], golden["ptx"]["memory"]
        if any(widest(memory, kind) < widest(theirs, kind) for kind in ("ld.global", "st.global")):
            narrow[name] = (memory, theirs)
        machine = facts.machine_facts(kernel.ptx, kernel.name, str(tmp_path)) or {kernel.name: {}}
        if "error" in machine or machine[kernel.name].get("spill_stores"):
            refused[name] = machine
    assert len(narrow) <= (1 - AS_WIDE) * seen, narrow
    assert refused == {}
    assert seen > 20
