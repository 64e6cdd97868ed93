"""Lines of a kernel's texts and the ops of the fusion that they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from shardy_py.kernels import Kernel, emit, machine_code
from shardy_py.kernels.page.linked_text import GRID, LinkedText, linked_texts
from tests.unit.kernels.fusions import SUM, TRANSPOSE, fusion_of

SCALED_TANH = """
func.func @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {
  %0 = stablehlo.tanh %x : tensor<4096xf32>
  %1 = stablehlo.multiply %0, %x : tensor<4096xf32>
  return %1 : tensor<4096xf32>
}"""
TANH, MULTIPLY = 0, 1
ASSEMBLER = """#!/bin/sh
# ptxas -arch=sm_90 -o FILE - -lineinfo
test "$5" = -lineinfo && cat > "$3"
"""
DISASSEMBLER = """#!/bin/sh
# nvdisasm -c FILE -g; an instruction for each line that PTX names
line='\\t//## File "fusion", line \\1'
test "$3" = -g && sed -n "s|.*\\.loc\\t1 \\([0-9]*\\) .*|$line\\n        /*0000*/  FMUL R0 ;|p" "$2"
"""


def scaled_tanh() -> Kernel:
    """A kernel of two ops."""
    return emit(fusion_of(SCALED_TANH))


def ops_of(text: LinkedText, *words: str) -> set[int | None]:
    """The ops of the lines that have one of some words."""
    return {line.op for line in text.lines if any(word in line.text for word in words)}


def unlinked(stages: list[LinkedText]) -> list[str]:
    """The lines with values of no known op."""
    lines = [line for stage in stages for line in stage.lines]
    return [line.text for line in lines if line.op is None and line.text.lstrip().startswith("%")]


def test_each_stage_names_the_ops() -> None:
    """What replaces an op is for the same op of the fusion, in functions of their own and inlined."""
    stages, _ = linked_texts(scaled_tanh())
    assert [stages[0].title, stages[-1].title] == ["initial", "38.expand-float"]
    assert ops_of(stages[0], "math.tanh") == {TANH}
    assert ops_of(stages[0], "arith.mulf") == {MULTIPLY}
    assert ops_of(stages[0], "gpu.thread_id", "xla_gpu.loop") == {GRID}
    assert ops_of(stages[0], "tensor.insert") == {MULTIPLY}
    assert ops_of(stages[-1], "math.fma", "arith.divf") == {TANH}
    assert ops_of(stages[-1], "arith.mulf") == {TANH, MULTIPLY}
    assert ops_of(stages[-1], "gpu.thread_id") == {GRID}
    assert ops_of(stages[-1], "llvm.store") == {MULTIPLY}
    assert unlinked(stages) == []


def test_texts_are_those_of_the_kernel() -> None:
    """The texts are what the kernel prints; lines of the module change no instruction of the device."""
    kernel = scaled_tanh()
    stages, (ptx, _) = linked_texts(kernel)
    for stage in stages:
        assert str(stage).rstrip() == kernel.stage(stage.title).rstrip()
    ours = [line.text for line in ptx.lines if line.text.strip()]
    assert ours == [line for line in kernel.ptx.splitlines() if line.strip()]


def test_instructions_of_ptx_name_the_ops() -> None:
    """An instruction is for the op of the line from which LLVM made it."""
    _, (ptx, _) = linked_texts(scaled_tanh())
    assert ops_of(ptx, "fma.rn.f32", "div.full.f32") == {TANH}
    assert ops_of(ptx, "st.global") == {MULTIPLY}
    assert ops_of(ptx, "%tid.x") == {GRID}
    assert MULTIPLY in ops_of(ptx, "mul.rn.f32")
    assert ops_of(ptx, ".reg", ".version") == {None}


@pytest.mark.parametrize(
    "text",
    [
        SUM.format(shape="8x4096", result="8", dim=1),
        SUM.format(shape="2048x64", result="64", dim=0),
        TRANSPOSE.format(shape="64x96", result="96x64", dims="1, 0", dtype="f32"),
    ],
)
def test_all_lines_of_other_emitters_are_linked(text: str) -> None:
    """Each op of a module with shared memory and loops is for an op or for the grid, and so is each exchange in PTX."""
    stages, (ptx, _) = linked_texts(emit(fusion_of(text)))
    assert unlinked(stages) == []
    hero = 1 if "reduce" in text else 0
    assert ops_of(ptx, "shfl.sync", "bar.sync", "st.shared", "ld.shared", "ld.global", "st.global") == {hero}
    # What LLVM moves into another block loses its line.
    assert ops_of(ptx, "add.rn.f32") <= {hero, None}
    assert (hero in ops_of(ptx, "add.rn.f32")) == ("reduce" in text)


def test_instructions_of_the_device_name_the_ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code has the lines that PTX has; without the programs the text says which are missing."""
    for name, text in (("ptxas", ASSEMBLER), ("nvdisasm", DISASSEMBLER)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(machine_code, "find_program", lambda name: str(tmp_path / name))
    _, (_ptx, sass) = linked_texts(scaled_tanh())
    instructions = [line.op for line in sass.lines]
    assert set(instructions) >= {TANH, MULTIPLY, GRID}
    assert {line.text.strip() for line in sass.lines} == {"/*0000*/  FMUL R0 ;"}
    monkeypatch.setattr(machine_code, "find_program", lambda name: None)
    _, (_, missing) = linked_texts(scaled_tanh())
    assert not missing.lines
    assert "ptxas, nvdisasm" in missing.missing
