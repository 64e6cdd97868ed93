"""PTX of kernels, and of shared kernels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from attrs import evolve

import shardy_py as sdy
from shardy_py.errors import OptionError, UnsupportedError
from shardy_py.kernels import Fusion, emit, get_device
from shardy_py.kernels.device import H100
from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower.literals import nvptx
from shardy_py.kernels.lower.llvm import llvm_text
from shardy_py.kernels.lower.machine import ptx_text, with_read_parameters
from shardy_py.kernels.requirements import FILE, find_libdevice
from shardy_py.testing import make_op
from tests.unit.kernels import shared_kernels as kernels
from tests.unit.kernels.fusions import LOG_TRANSPOSE_ADD, NEGATE, SUM, fusion_of
from tests.unit.kernels.module_texts import run_loop_pipeline

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

FUNCTION = """
func.func @main(%x: tensor<300x{type}>) -> tensor<300x{type}> {{
  %0 = stablehlo.{op} %x : tensor<300x{type}>
  return %0 : tensor<300x{type}>
}}"""


@pytest.fixture
def no_libdevice(monkeypatch: pytest.MonkeyPatch) -> None:
    """No libdevice is found on this machine."""
    monkeypatch.setattr("shardy_py.kernels.requirements._candidates", list)
    monkeypatch.delenv("SHARDY_LIBDEVICE", raising=False)


def test_neighbours_are_moved_at_once() -> None:
    """A large elementwise kernel has one load and one store, of four elements each."""
    ptx = emit(fusion_of(NEGATE.format(shape="6x512x4096"))).ptx
    assert re.findall(r"(?:ld|st)\.global\S*", ptx) == ["ld.global.nc.v4.b32", "st.global.v4.b32"]
    assert ".reqntid 128, 1, 1" in ptx
    assert ".visible .entry main(" in ptx


@pytest.mark.parametrize("op", ["shift_left", "shift_right_logical", "shift_right_arithmetic"])
def test_shifts_read_the_whole_amount(op: str) -> None:
    """A shift by 2^32 is not one by 0: both numbers are read with all of their bits."""
    text = f"""func.func @main(%x: tensor<300xi64>, %y: tensor<300xi64>) -> tensor<300xi64> {{
      %0 = stablehlo.{op} %x, %y : tensor<300xi64>
      return %0 : tensor<300xi64>
    }}"""
    assert re.findall(r"ld\.global\S*", emit(fusion_of(text)).ptx) == ["ld.global.nc.b64"] * 2


DIVIDE = """
func.func @main(%x: tensor<300x{type}>) -> tensor<300x{type}> {{
  %c = stablehlo.constant dense<{by}> : tensor<300x{type}>
  %0 = stablehlo.divide %x, %c : tensor<300x{type}>
  return %0 : tensor<300x{type}>
}}"""


@pytest.mark.parametrize(("capability", "version"), [(60, "6.0"), (90, "8.1"), (100, "8.6")])
def test_version_of_ptx_is_one_that_the_device_has(capability: int, version: str) -> None:
    """PTX has a version in which the device and the instructions of kernels are known."""
    device = evolve(get_device("h100"), capability=capability)
    ptx = emit(fusion_of(SUM.format(shape="64x4096", result="64", dim=1)), device=device).ptx
    assert f".version {version}\n.target sm_{capability}\n" in ptx


@pytest.mark.parametrize("capability", [20, 91, 999])
def test_unknown_capabilities_are_refused(capability: int) -> None:
    """A device that LLVM does not know, which would end the process, is refused."""
    kernel = emit(fusion_of(NEGATE.format(shape="300")), device=evolve(get_device("h100"), capability=capability))
    with pytest.raises(UnsupportedError, match=f"{capability} is not a compute capability"):
        _ = kernel.ptx


def test_roots_are_as_exact_as_xlas() -> None:
    """Square roots of f32 are one instruction of the device, those of f64 are rounded right."""
    assert "sqrt.approx.f32" in emit(fusion_of(FUNCTION.format(op="sqrt", type="f32"))).ptx
    assert "sqrt.rn.f64" in emit(fusion_of(FUNCTION.format(op="sqrt", type="f64"))).ptx


@pytest.mark.parametrize(
    ("type_", "by", "instruction"),
    [
        ("f32", 3.0, "div.full.f32"),
        ("f16", 3.0, "div.full.f32"),
        ("f64", 3.0, "div.rn.f64"),
        ("f32", 0.25, "mul.rn.f32"),
    ],
)
def test_quotients_are_as_exact_as_xlas(type_: str, by: float, instruction: str) -> None:
    """Quotients of up to 32 bits are not rounded by more instructions; by a power of two they are products."""
    ptx = emit(fusion_of(DIVIDE.format(type=type_, by=by))).ptx
    assert instruction in ptx
    assert ptx.count("div.") == ("div" in instruction)


@pytest.mark.parametrize(("device", "target"), [("a100", "sm_80"), ("h100", "sm_90")])
def test_the_device_is_the_target(device: str, target: str) -> None:
    """PTX is for the compute capability of the device."""
    assert f".target {target}" in emit(fusion_of(NEGATE.format(shape="300")), device=device).ptx


@pytest.mark.usefixtures("no_libdevice")
@pytest.mark.parametrize(
    ("op", "type_"),
    [("tanh", "f32"), ("exponential", "f32"), ("rsqrt", "f32"), ("sqrt", "f64"), ("exponential", "bf16")],
)
def test_functions_by_instructions(op: str, type_: str) -> None:
    """Without libdevice, functions that instructions compute need no call."""
    ptx = emit(fusion_of(FUNCTION.format(op=op, type=type_))).ptx
    assert "call" not in ptx
    assert ".extern" not in ptx


@pytest.mark.usefixtures("no_libdevice")
def test_functions_that_need_libdevice() -> None:
    """Without libdevice, another function is an error that says how to get it."""
    with pytest.raises(UnsupportedError, match=r"math\.sin of f32 needs NVIDIA's libdevice") as caught:
        assert emit(fusion_of(FUNCTION.format(op="sine", type="f32"))).llvm
    assert "nvidia-cuda-nvcc-cu12" in caught.value.diagnostics[0].hint


@pytest.mark.usefixtures("no_libdevice")
def test_a_path_of_libdevice(tmp_path: Path) -> None:
    """The path is a file or its folder; one without the file is an error."""
    assert find_libdevice() is None
    (tmp_path / FILE).write_bytes(b"")
    assert find_libdevice(tmp_path) == find_libdevice(tmp_path / FILE) == tmp_path / FILE
    with pytest.raises(OptionError, match="there is no file"):
        find_libdevice(tmp_path / "elsewhere")


@pytest.mark.skipif(find_libdevice() is None, reason="libdevice is not installed (nvidia-cuda-nvcc-cu12)")
def test_functions_of_libdevice() -> None:
    """With libdevice its functions are part of the kernel."""
    kernel = emit(fusion_of(LOG_TRANSPOSE_ADD.format(n=9)))
    assert "@__nv_logf" in kernel.llvm
    assert ".extern" not in kernel.ptx
    assert "__nv_" not in kernel.ptx


def picked(count: int, size: int = 5) -> Fusion:
    """Return a fusion in which each row comes from another operand."""
    rows = count * size
    domain = f"i in [0, {rows - 1}], j in [0, 4]"
    maps = [f"(i, j) -> (i floordiv {count}, j), domain: {domain}, i mod {count} in [{n}, {n}]" for n in range(count)]
    dialect = sdy.Dialect("odd")
    dialect.op("odd.mixed", indexing=maps, emission="*xs -> pick(*xs)")
    op = make_op("odd.mixed", [(size, 5)] * count, [(rows, 5)])
    return Fusion.of_function(op.program.functions["main"], sdy.Registry.of([dialect]))


@pytest.mark.parametrize("count", [2, 3])
def test_parameters_are_read_before_one_is_chosen(count: int) -> None:
    """No address of a parameter is taken: each is read from its own place."""
    ptx = emit(picked(count)).ptx
    assert len(re.findall(r"ld\.param\.b64 \s*%rd\d+, \[\w+_param_\d+\]", ptx)) == count + 1
    assert not re.search(r"mov\.b64 \s*%rd\d+, \w+_param_", ptx)
    assert not re.search(r"ld\.param\S* \s*%rd\d+, \[%", ptx)


def test_other_uses_of_addresses_stay() -> None:
    """An address with which something else is computed is left alone, with all others."""
    text = "\tmov.b64 \t%rd1, k_param_0;\n\tmov.b64 \t%rd2, k_param_1;\n\tselp.b64 \t%rd3, %rd1, %rd2, %p1;\n"
    read = "\tld.param.b64 \t%rd4, [%rd3];\n"
    assert with_read_parameters(text + read) == (
        "\tld.param.b64 \t%rd1, [k_param_0];\n\tld.param.b64 \t%rd2, [k_param_1];\n"
        "\tselp.b64 \t%rd3, %rd1, %rd2, %p1;\n\tmov.b64 \t%rd4, %rd3;\n"
    )
    for other in (
        "\tadd.s64 \t%rd5, %rd1, 8;\n",
        "\tmov.b64 \t%rd6, %rd3;\n",
        "\tselp.b64 \t%rd7, %rd3, %rd9, %p1;\n",
        "\tld.param.b64 \t%rd8, [%rd2+8];\n",
    ):
        assert with_read_parameters(text + read + other) == text + read + other
    assert with_read_parameters(read) == read


@pytest.mark.parametrize(("size", "widest"), [(35, ""), (34, ".v2"), (36, ".v4")])
def test_no_vector_reaches_behind_the_end(size: int, widest: str) -> None:
    """What LLVM reads at once lies in the tensor: a buffer counts as aligned as its size."""
    dialect = sdy.Dialect("odd")
    dialect.op("odd.energy", indexing="()[k] -> (k)", emission="x -> sum(x * x)")
    op = make_op("odd.energy", [(size,)], [()])
    ptx = emit(Fusion.of_function(op.program.functions["main"], sdy.Registry.of([dialect]))).ptx
    places = re.findall(r"ld\.global\.nc(\.v\d)?\.b32 \s*[^\[]*\[%rd\d+(?:\+(\d+))?\]", ptx)
    assert max(int(place or 0) + 4 * int(vector[2:] or 1) for vector, place in places) == 4 * size
    assert max(vector for vector, _ in places) == widest


pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")


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
