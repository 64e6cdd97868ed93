"""``bf16`` where the processor has none: integers of 16 bits, widened to ``f32`` and rounded by integers.

What the hardware of some hosts does instead flushes small numbers to zero; these texts give the same bits everywhere.
"""

from __future__ import annotations

from shardy_py.kernels.lower.writer import FunctionWriter


def widened(writer: FunctionWriter, value: str) -> str:
    """Return the ``f32`` of the bits of a ``bf16``."""
    bits = writer.new(f"zext i16 {value} to i32")
    high = writer.new(f"shl nuw i32 {bits}, 16")
    return writer.new(f"bitcast i32 {high} to float")


def rounded(writer: FunctionWriter, value: str) -> str:
    """Return the bits of the nearest ``bf16`` of a ``f32``, halves to even; NaNs stay NaNs and become quiet."""
    bits = writer.new(f"bitcast float {value} to i32")
    high = writer.new(f"lshr i32 {bits}, 16")
    last = writer.new(f"and i32 {high}, 1")
    half = writer.new(f"add nuw nsw i32 {last}, 32767")
    near = writer.new(f"lshr i32 {writer.new(f'add i32 {bits}, {half}')}, 16")
    quiet = writer.new(f"or i32 {high}, 64")
    is_nan = writer.new(f"fcmp uno float {value}, 0.0")
    chosen = writer.new(f"select i1 {is_nan}, i32 {quiet}, i32 {near}")
    return writer.new(f"trunc i32 {chosen} to i16")


def rounded_to_odd(writer: FunctionWriter, value: str) -> str:
    """Return a ``f64`` as ``f32``, to an odd number where it does not fit, so that rounding again makes no tie."""
    near = writer.new(f"fptrunc double {value} to float")
    back = writer.new(f"fpext float {near} to double")
    amount = writer.call("llvm.fabs.f64", "double", [("double", value)])
    amount_back = writer.call("llvm.fabs.f64", "double", [("double", back)])
    is_beyond = writer.new(f"fcmp ogt double {amount_back}, {amount}")
    is_inexact = writer.new(f"fcmp one double {back}, {value}")
    bits = writer.new(f"bitcast float {near} to i32")
    less = writer.new(f"sub i32 {bits}, {writer.new(f'zext i1 {is_beyond} to i32')}")
    odd = writer.new(f"or i32 {less}, {writer.new(f'zext i1 {is_inexact} to i32')}")
    # An overflow of f32 is infinite in the shorter type, too.
    infinite = writer.new(f"fcmp oeq double {amount_back}, 0x7FF0000000000000")
    chosen = writer.new(f"select i1 {infinite}, i32 {bits}, i32 {odd}")
    return writer.new(f"bitcast i32 {chosen} to float")
