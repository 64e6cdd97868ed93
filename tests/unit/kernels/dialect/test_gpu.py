"""Exchanges between the lanes of a warp: their mode."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.errors import ParseError, UnsupportedError
from shardy_py.kernels import emit
from shardy_py.kernels.dialect.gpu import ShuffleMode, ShuffleModeAttr, ShuffleOp
from shardy_py.kernels.dialect.text import parse_kernel_module, print_kernel_module
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower.host import compile_host
from shardy_py.kernels.lower.literals import nvptx
from shardy_py.kernels.lower.llvm import llvm_text
from shardy_py.kernels.run.kernel import run_kernel
from tests.unit.kernels.fusions import SUM, fusion_of

EXCHANGE = """
func.func @main(%x: tensor<32xf32>, %o: tensor<32xf32>) -> tensor<32xf32> attributes {xla.entry} {
  %t = gpu.thread_id x
  %one = arith.constant 1 : i32
  %width = arith.constant 32 : i32
  %e = tensor.extract %x[%t] : tensor<32xf32>
  %s, %p = EXCHANGE
  %r = tensor.insert %s into %o[%t] : tensor<32xf32>
  func.return %r : tensor<32xf32>
}"""
DOWN = "gpu.shuffle down %e, %one, %width : f32"
GENERIC = '"gpu.shuffle"(%e, %one, %width) MODE : (f32, i32, i32) -> (f32, i1)'
WARP = Launch((1, 1, 1), (32, 1, 1))


def run(exchange: str) -> np.ndarray:
    """What a warp writes that exchanges its numbers."""
    module = parse_kernel_module(EXCHANGE.replace("EXCHANGE", exchange))
    (actual,) = run_kernel(module, WARP, [np.arange(32, dtype=np.float32)], [((32,), np.float32)])
    return actual  # type: ignore[no-any-return]


def test_generic_texts_say_the_mode() -> None:
    """MLIR knows no exchange without a mode; both forms are the same op."""
    text = print_kernel_module(parse_kernel_module(EXCHANGE.replace("EXCHANGE", DOWN)), generic=True)
    assert "mode = #gpu<shuffle_mode down>" in text
    assert DOWN.split()[1] in print_kernel_module(parse_kernel_module(text))
    expected = np.append(np.arange(1, 32), 31)
    for exchange in (DOWN, GENERIC.replace("MODE", "<{mode = #gpu<shuffle_mode down>}>")):
        np.testing.assert_array_equal(run(exchange), expected)


def test_an_exchange_without_a_mode_is_refused() -> None:
    """It is not taken for one with lanes further down."""
    with pytest.raises(UnsupportedError, match="no mode"):
        run(GENERIC.replace("MODE", ""))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("xor", np.arange(32) ^ 1),
        ("up", np.maximum(np.arange(32) - 1, 0)),
        ("idx", np.ones(32)),
    ],
)
def test_other_modes_in_the_interpreter(mode: str, expected: np.ndarray) -> None:
    """Lanes take values of the lane that the mode says; the own one where there is none."""
    np.testing.assert_array_equal(run(GENERIC.replace("MODE", f"<{{mode = #gpu<shuffle_mode {mode}>}}>")), expected)


def test_machine_code_exchanges_with_lanes_further_down_only() -> None:
    """Neither the host nor a device gets another mode as if it were that one."""
    kernel = emit(fusion_of(SUM.format(shape="4x64", result="4", dim=1)))
    for lower in (compile_host, lambda module, launch: llvm_text(module, launch, nvptx(has_libdevice=False))):
        module = kernel.module()
        (exchange, *_) = [op for op in module.walk() if isinstance(op, ShuffleOp)]
        exchange.properties["mode"] = ShuffleModeAttr(ShuffleMode.UP)
        with pytest.raises(UnsupportedError, match="the op has mode up"):
            lower(module, kernel.launch)


def test_a_mode_that_mlir_does_not_know_is_no_text() -> None:
    """The parser refuses it."""
    with pytest.raises(ParseError, match="shuffle"):
        run(GENERIC.replace("MODE", "<{mode = #gpu<shuffle_mode sideways>}>"))
