"""PTX of kernels whose threads share memory."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import re

from shardy_py.kernels.device import H100
from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower.literals import nvptx
from shardy_py.kernels.lower.llvm import llvm_text
from shardy_py.kernels.lower.machine import ptx_text
from tests.unit.kernels import shared_kernels as kernels
from tests.unit.kernels.module_texts import run_loop_pipeline


def ptx(text: str, launch: Launch, name: str) -> str:
    """The PTX of a kernel."""
    module = parse_kernel_module(text)
    run_loop_pipeline(module)
    return ptx_text(llvm_text(module, launch, nvptx(has_libdevice=False)), name, H100, None)


def memory(text: str) -> list[str]:
    """The accesses of memory in a text, parameters left out."""
    return re.findall(r"\b(?:ld|st|atom|red)\.(?!param)\S+", text)


def test_a_tile() -> None:
    """A tile takes its bytes of shared memory; between writing and reading it is one barrier."""
    text = ptx(kernels.TRANSPOSE, kernels.TRANSPOSE_LAUNCH, "transpose")
    assert re.search(r"\.shared \.align 16 \.b8 \w+\[4224\]", text)
    assert text.count("bar.sync") == 1
    written, read = text.split("bar.sync")
    assert memory(written).count("st.shared.b32") == memory(read).count("ld.shared.b32") == 8


@pytest.mark.parametrize(("type_", "bytes_", "words"), [("f32", 4, 1), ("bf16", 2, 1), ("f64", 8, 2)])
def test_lanes(type_: str, bytes_: int, words: int) -> None:
    """Lanes exchange words of 32 bits, in two times five steps."""
    text = ptx(kernels.rows(type_, bytes_), kernels.ROWS_LAUNCH, "rows")
    assert text.count("shfl.sync.down.b32") == 10 * words
    assert "call" not in text


@pytest.mark.parametrize(
    ("type_", "bytes_", "op", "expected"),
    [
        ("f32", 4, "arith.addf", ["atom.global.add.f32"]),
        ("f64", 8, "arith.addf", ["atom.global.add.f64"]),
        ("bf16", 2, "arith.addf", ["atom.global.add.noftz.bf16"]),
        ("i32", 4, "arith.maxui", ["atom.global.max.u32"]),
        ("f32", 4, "arith.maximumf", ["atom.global.max.s32", "atom.global.min.u32"]),
        ("f32", 4, "arith.mulf", ["atom.relaxed.gpu.global.cas.b32"]),
        ("f32", 4, "", []),
    ],
)
def test_atomic_updates(type_: str, bytes_: int, op: str, expected: list[str]) -> None:
    """Memory itself adds and compares where it can; else elements are compared and exchanged, or just written."""
    text = ptx(kernels.updates(type_, bytes_, op), kernels.UPDATES_LAUNCH, "updates")
    assert [name for name in memory(text) if name.startswith("atom")] == expected
    assert ("st.relaxed.gpu.global.b32" in text) == (op == "")
