"""Exported programs with dynamic sizes, as traces with symbols for these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shardy_py.torch.frontend.calls import flat
from shardy_py.torch.frontend.functional import functional
from shardy_py.torch.frontend.signature import Signature, read_signature
from shardy_py.torch.frontend.types import as_number, is_symbolic
from shardy_py.torch.modules.joint import JointOutput, JointTrace
from shardy_py.torch.modules.symbolic_trace import SizeSymbols, SymbolicTrace


def exported_trace(native: Any) -> SymbolicTrace | None:
    """Return an exported program with symbols for the dynamic sizes of its inputs, or None if it has none.

    Args:
        native: The exported program, or another program of PyTorch.
    """
    if not hasattr(native, "graph_signature"):
        return None
    program, _ = functional(native)
    signature = read_signature(program)
    inputs = [value for argument, value in signature.arguments if argument.kind == "input"]
    sizes = [size for value in inputs for size in value.shape if is_symbolic(size)]
    if not sizes:
        return None
    mode = next(value.fake_mode for value in inputs if any(map(is_symbolic, value.shape)))
    symbols = _symbols(inputs, signature)
    known = {*symbols.symbols, *symbols.fixed}
    guards = [guard for guard in _guards(program, mode.shape_env) if known.issuperset(guard.free_symbols)]
    return SymbolicTrace(_trace(program, signature), mode, symbols, tuple(dict.fromkeys(guards)))


def _symbols(inputs: list[Any], signature: Signature) -> SizeSymbols:
    """Return the symbols in the sizes of inputs; a number that is an input stays as in the example."""
    shapes = [tuple(size.node.expr if is_symbolic(size) else size for size in value.shape) for value in inputs]
    example = tuple(tuple(map(as_number, value.shape)) for value in inputs)
    numbers = [node.meta["val"] for node in signature.constants if is_symbolic(node.meta.get("val"))]
    fixed = {number.node.expr: as_number(number) for number in numbers}
    values = SizeSymbols(shapes, (), (), fixed).values_of(example) or {}
    symbols = tuple(symbol for symbol in values if symbol not in fixed)
    return SizeSymbols(shapes, symbols, tuple(values[symbol] for symbol in symbols), fixed)


def _guards(program: Any, environment: Any) -> Iterator[Any]:
    """Yield the conditions on sizes: their ranges, those of the tracer, and what the program asserts."""
    for symbol, bounds in program.range_constraints.items():
        # PyTorch says that sizes are at least 2 where the example's are, and runs the program at 0 and 1.
        yield from (symbol >= (bounds.lower if bounds.lower > 2 else 0), symbol <= bounds.upper)
    yield from (environment.replace(guard.expr) for guard in environment.guards)
    for node in program.graph.nodes:
        meta: Mapping[str, Any] = getattr(node.args[0], "meta", {}) if _asserts(node) else {}
        if is_symbolic(meta.get("val")):
            yield meta["val"].node.expr


def _asserts(node: Any) -> bool:
    return node.op == "call_function" and str(node.target).startswith("aten._assert_scalar.")


def _trace(program: Any, signature: Signature) -> JointTrace:
    """Return the trace of an exported program, which has no gradients."""
    arguments = zip(signature.nodes, signature.arguments, strict=True)
    results = flat(next(iter(program.graph.find_nodes(op="output"))).args[0])
    return JointTrace(
        program.graph_module,
        tuple((nodes, argument) for nodes, (argument, _) in arguments),
        signature.constants,
        {},
        tuple(_output(number, result, signature) for number, result in enumerate(results)),
        signature.pairs,
        None,
        None,
        tuple((argument.name, None) for argument, _ in signature.arguments if argument.kind == "input"),
    )


def _output(number: int, result: Any, signature: Signature) -> JointOutput:
    name, writes = signature.output(number)
    meta: Mapping[str, Any] = getattr(result, "meta", {})
    value = meta.get("val", result)
    is_tensor = hasattr(value, "dtype")
    constant = None if is_tensor else value
    return JointOutput("buffer" if writes else "output", writes or name, number, constant, is_tensor)
