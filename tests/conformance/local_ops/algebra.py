"""Transforms and decompositions of matrices, and custom calls."""

from __future__ import annotations

from tests.conformance.local_ops.case import Case

SOLVE = "left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>"
TOP_K = 'call_target_name = "mhlo.topk", mhlo.attributes = {k = 3 : i64, largest = true}, mhlo.version = 1 : i64'


def transformed(kind: str, length: str, operand: str, result: str) -> Case:
    """Return a Fourier transform."""
    attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = array<i64: {length}>"
    return Case("stablehlo.fft", [operand], [result], attributes)


CASES = [
    transformed("FFT", "15", "9x15xcomplex<f32>", "9x15xcomplex<f32>"),
    transformed("IFFT", "3, 15", "9x3x15xcomplex<f32>", "9x3x15xcomplex<f32>"),
    transformed("RFFT", "15", "9x15xf32", "9x8xcomplex<f32>"),
    transformed("IRFFT", "15", "9x8xcomplex<f32>", "9x15xf32"),
    Case("stablehlo.triangular_solve", ["9x3x3xf32", "9x3x15xf32"], ["9x3x15xf32"], SOLVE),
    Case("stablehlo.cholesky", ["9x3x3xf32"], ["9x3x3xf32"], "lower = true"),
    Case("stablehlo.custom_call", ["9x15xf32"], ["9x3xf32", "9x3xi32"], TOP_K),
]
