"""Functions of ``math`` as LLVM: intrinsics, libdevice on devices, the C library and own series on the host."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from xdsl.dialects import builtin
from xdsl.ir import Operation

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.lower.exponentials import DOUBLE, SINGLE, hyperbolic_tangent
from shardy_py.kernels.lower.floats import binary, bind_rounded, computed, computed_type, flags, intrinsic
from shardy_py.kernels.lower.logarithms import logarithm, logarithm_of_two, logarithm_plus_one
from shardy_py.kernels.lower.writer import FunctionWriter, Handler

# What every processor has, or LLVM expands.
_EVERYWHERE = {
    **{"math.absf": "fabs", "math.ceil": "ceil", "math.copysign": "copysign", "math.floor": "floor", "math.fma": "fma"},
    **{"math.roundeven": "roundeven", "math.sqrt": "sqrt", "math.trunc": "trunc"},
}
# What LLVM has a name for and the C library computes.
_HOST_INTRINSICS = {
    **{"math.cos": "cos", "math.exp": "exp", "math.exp2": "exp2", "math.log": "log", "math.log10": "log10"},
    **{"math.log2": "log2", "math.powf": "pow", "math.round": "round", "math.sin": "sin"},
}
# What calls of the C library would keep from becoming vectors.
_HOST_SERIES: Mapping[tuple[str, str], Callable[[FunctionWriter, str], str]] = MappingProxyType(
    {
        ("math.exp", "float"): SINGLE.exponential,
        ("math.exp", "double"): DOUBLE.exponential,
        ("math.exp2", "float"): SINGLE.of_two,
        ("math.exp2", "double"): DOUBLE.of_two,
        ("math.expm1", "float"): SINGLE.minus_one,
        ("math.expm1", "double"): DOUBLE.minus_one,
        ("math.log", "float"): logarithm,
        ("math.log1p", "float"): logarithm_plus_one,
        ("math.log2", "float"): logarithm_of_two,
        ("math.tanh", "double"): hyperbolic_tangent,
    }
)
_LIBRARY = {
    f"math.{name}": name
    for name in (
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf", "exp", "exp2"),
        *("expm1", "log", "log10", "log1p", "log2", "round", "rsqrt", "sin", "sinh", "tan", "tanh"),
    )
} | {"arith.remf": "fmod", "math.powf": "pow"}
_INSTRUCTIONS = {"math.exp2": "ex2.approx.f", "math.log2": "lg2.approx.f"}
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4


def function(name: str) -> Handler:
    """Return what writes a function of ``math``.

    Args:
        name: The name of the op.
    """

    def write(writer: FunctionWriter, op: Operation) -> None:
        if not writer.target.is_device:
            _on_host(writer, op, name)
        elif name in _INSTRUCTIONS and "afn" in flags(op):
            value = [("float", writer.get(op.operands[0]))]
            writer.bind(op.results[0], writer.call(f"llvm.nvvm.{_INSTRUCTIONS[name]}", "float", value))
        elif writer.target.has_libdevice:
            _called(writer, op, f"__nv_{_LIBRARY[name]}")
        else:
            _by_instructions(writer, op, name)

    return write


def _called(writer: FunctionWriter, op: Operation, name: str) -> None:
    """Call a function of a library; its name ends in f for ``f32``."""
    type_ = computed_type(writer, op.results[0].type)
    arguments = [(type_, computed(writer, value)) for value in op.operands]
    suffix = "" if type_ == "double" else "f"
    bind_rounded(writer, op.results[0], writer.call(name + suffix, type_, arguments))


def _on_host(writer: FunctionWriter, op: Operation, name: str) -> None:
    series = _HOST_SERIES.get((name, computed_type(writer, op.results[0].type)))
    if series is not None:
        bind_rounded(writer, op.results[0], series(writer, computed(writer, op.operands[0])))
    elif name in _HOST_INTRINSICS:
        intrinsic(_HOST_INTRINSICS[name])(writer, op)
    elif name == "math.rsqrt":
        type_ = computed_type(writer, op.results[0].type)
        suffix = "f64" if type_ == "double" else "f32"
        root = writer.call(f"llvm.sqrt.{suffix}", type_, [(type_, computed(writer, op.operands[0]))])
        bind_rounded(writer, op.results[0], writer.new(f"fdiv {type_} 1.0, {root}"))
    else:
        _called(writer, op, _LIBRARY[name])


def _by_instructions(writer: FunctionWriter, op: Operation, name: str) -> None:
    """Compute a function by instructions of the device.

    Raises:
        UnsupportedError: it has none.
    """
    is_single = isinstance(op.results[0].type, builtin.Float32Type)
    if name == "math.round":
        intrinsic("round")(writer, op)
    elif name == "arith.remf":
        binary("frem")(writer, op)
    elif is_single and name == "math.exp":
        writer.bind(op.results[0], _exp(writer, writer.get(op.operands[0])))
    elif is_single and name == "math.exp2":
        writer.bind(op.results[0], _power_of_two(writer, writer.get(op.operands[0])))
    elif is_single and name == "math.rsqrt":
        text = writer.get(op.operands[0])
        writer.bind(op.results[0], writer.call("llvm.nvvm.rsqrt.approx.f", "float", [("float", text)]))
    else:
        message = f"{name} of {op.results[0].type} needs NVIDIA's libdevice"
        hint = "install nvidia-cuda-nvcc-cu12, or give the path of libdevice.10.bc"
        raise UnsupportedError(Diagnostic("no-libdevice", message, op=name, hint=hint))


def _power_of_two(writer: FunctionWriter, x: str) -> str:
    return writer.call("llvm.nvvm.ex2.approx.f", "float", [("float", x)])


def _exp(writer: FunctionWriter, x: str) -> str:
    """Return ``2^n * e^r`` with ``x = n log 2 + r``; ``2^n`` in two steps, so that no step overflows by itself."""

    def number(value: float) -> str:
        return writer.number(value, builtin.f32)

    def unary(name: str, value: str) -> str:
        return writer.call(f"llvm.{name}.f32", "float", [("float", value)])

    def fma(*values: str) -> str:
        return writer.call("llvm.fma.f32", "float", [("float", value) for value in values])

    scaled = writer.new(f"fmul float {x}, {number(math.log2(math.e))}")
    bounded = writer.call("llvm.minnum.f32", "float", [("float", scaled), ("float", number(300))])
    bounded = writer.call("llvm.maxnum.f32", "float", [("float", bounded), ("float", number(-300))])
    exponent = unary("roundeven", bounded)
    rest = fma(exponent, number(-_LN2_LOW), fma(exponent, number(-_LN2_HIGH), x))
    fraction = _power_of_two(writer, writer.new(f"fmul float {rest}, {number(math.log2(math.e))}"))
    first = unary("floor", writer.new(f"fmul float {exponent}, {number(0.5)}"))
    second = writer.new(f"fsub float {exponent}, {first}")
    half = writer.new(f"fmul float {fraction}, {_power_of_two(writer, first)}")
    result = writer.new(f"fmul float {half}, {_power_of_two(writer, second)}")
    # What is infinite leaves no rest.
    is_large = writer.new(f"fcmp ogt float {scaled}, {number(300)}")
    is_small = writer.new(f"fcmp olt float {scaled}, {number(-300)}")
    result = writer.new(f"select i1 {is_large}, float {number(math.inf)}, float {result}")
    result = writer.new(f"select i1 {is_small}, float {number(0)}, float {result}")
    is_nan = writer.new(f"fcmp uno float {x}, {x}")
    return writer.new(f"select i1 {is_nan}, float {x}, float {result}")


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {name: function(name) for name in _LIBRARY} | {name: intrinsic(short) for name, short in _EVERYWHERE.items()}
)
