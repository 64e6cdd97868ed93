"""Modules that are traced with symbols for sizes of their inputs, and the graph at some sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import lcm
from typing import Any

from attrs import evolve, field

from shardy_py.torch.modules.joint import JointOutput, JointTrace
from shardy_py.torch.modules.size_expressions import Sizes
from shardy_py.torch.modules.traces_at_sizes import outputs_with_numbers, with_numbers
from shardy_py.values import frozen

Shapes = tuple[tuple[int, ...], ...]
_STEPS = (1, 2, 3, -2, -1)
_FACTORS = (32, 16, 8, 4, 2)
_DIVISIONS = ("FloorDiv", "Mod", "PythonMod")
_LONGEST_PERIOD = 256


def _preorder(expression: Any) -> Iterator[Any]:
    """Yield an expression of SymPy and all that it is made of."""
    yield expression
    for argument in expression.args:
        yield from _preorder(argument)


@frozen(eq=False)
class SizeSymbols:
    """Sizes of inputs that are symbols, or follow from them.

    Attributes:
        shapes: The shapes of the inputs: numbers, symbols of PyTorch, and expressions of these.
        symbols: The symbols that vary.
        example: The size of each in the example.
        fixed: Symbol to size, for those that stay as in the example.
    """

    shapes: Sequence[tuple[Any, ...]]
    symbols: tuple[Any, ...]
    example: Sizes
    fixed: Mapping[Any, int] = {}

    def sizes_of(self, shapes: Shapes) -> Sizes | None:
        """Return the sizes in some shapes, or None if these are no shapes of the inputs."""
        values = self.values_of(shapes)
        if values is None or any(size_at(dim, values) != size for dim, size in self._pairs(shapes)):
            return None
        return tuple(values[symbol] for symbol in self.symbols)

    def values_of(self, shapes: Shapes) -> dict[Any, int] | None:
        """Return symbol to size, by the first dimension that says it, or None if the numbers of dimensions differ."""
        if [len(shape) for shape in shapes] != [len(shape) for shape in self.shapes]:
            return None
        values = dict(self.fixed)
        # Expressions come last, as symbols may say what is in them.
        for dim, size in sorted(self._pairs(shapes), key=lambda pair: hasattr(pair[0], "args") and bool(pair[0].args)):
            symbol, value = _solved(dim, size, values)
            values.setdefault(symbol, value)
        return {symbol: value for symbol, value in values.items() if symbol is not None}

    def by_symbol(self, sizes: Sizes) -> dict[Any, int]:
        """Return symbol to size."""
        return {**self.fixed, **dict(zip(self.symbols, sizes, strict=True))}

    def _pairs(self, shapes: Shapes) -> list[tuple[Any, int]]:
        pairs = zip(self.shapes, shapes, strict=True)
        return [pair for shape, sizes in pairs for pair in zip(shape, sizes, strict=True)]


def size_at(dim: Any, values: Mapping[Any, int]) -> Any:
    """Return the size of a dimension, a number or an expression, given the size of each symbol."""
    return dim.xreplace(values) if hasattr(dim, "xreplace") else dim


def _solved(dim: Any, size: int, values: Mapping[Any, int]) -> tuple[Any, int]:
    """Return the only symbol without a value in the size of a dimension, and its value; None if there is none."""
    expression = size_at(dim, values)
    unknown: set[Any] = getattr(expression, "free_symbols", set())
    if len(unknown) != 1:
        return None, 0
    (symbol,) = unknown
    factor = expression.coeff(symbol)
    rest = expression - factor * symbol
    is_linear = bool(factor) and symbol not in rest.free_symbols
    value = (size - rest) / factor if is_linear else None
    return (symbol, int(value)) if value is not None and value.is_integer else (None, 0)


def make_symbols(shapes: Shapes, mode: Any) -> tuple[SizeSymbols, list[tuple[Any, ...]]]:
    """Return symbols for the sizes of inputs but 0 and 1, and the shapes with them.

    Those that are equal in the same dimension of several inputs are one.

    Args:
        shapes: The shapes of the inputs.
        mode: The mode of tensors without elements, which has an environment of shapes.
    """
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    environment = mode.shape_env
    symbols: dict[tuple[int, int], Any] = {}
    sizes: dict[tuple[int, int], Any] = {}
    for key in dict.fromkeys(key for shape in shapes for key in enumerate(shape) if key[1] > 1):
        source = ConstantSource(f"size{len(environment.var_to_range)}")
        symbols[key] = environment.create_symbol(key[1], source, dynamic_dim=DimDynamic.DYNAMIC)
        sizes[key] = environment.create_symintnode(symbols[key], hint=key[1], source=source)
    named = [tuple(symbols.get(key, key[1]) for key in enumerate(shape)) for shape in shapes]
    symbolic = [tuple(sizes.get(key, key[1]) for key in enumerate(shape)) for shape in shapes]
    return SizeSymbols(named, tuple(symbols.values()), tuple(size for _, size in symbols)), symbolic


@frozen(eq=False)
class SymbolicTrace:
    """A module that was traced with symbols for sizes.

    Attributes:
        trace: What was traced.
        mode: The mode of its tensors without elements.
        symbols: The symbols.
        guards: The conditions under which other sizes have this trace.
    """

    trace: JointTrace = field(repr=False)
    mode: Any = field(repr=False)
    symbols: SizeSymbols
    guards: tuple[Any, ...]

    def holds(self, sizes: Sizes) -> bool:
        """Return whether the module has this trace at some sizes."""
        return not self.broken_guards(self.symbols.by_symbol(sizes))

    def broken_guards(self, values: Mapping[Any, int]) -> list[Any]:
        """Return the guards that do not hold, given the size of each symbol."""
        return [guard for guard in self.guards if not bool(guard.xreplace(values))]

    def period(self) -> int:
        """Return the least number whose multiples the guards allow to be added, as far as they divide by numbers."""
        terms = [term for guard in self.guards for term in _preorder(guard) if type(term).__name__ in _DIVISIONS]
        divisors = [int(term.args[1]) for term in terms if getattr(term.args[1], "is_Integer", False)]
        period = lcm(*divisors)
        return period if period <= _LONGEST_PERIOD else 1

    def begun_at(self, shapes: Shapes) -> SymbolicTrace:
        """Return the trace with other shapes of its inputs in the place of the example's."""
        sizes = self.symbols.sizes_of(shapes)
        assert sizes is not None, "a trace begins at shapes that it is for"
        return evolve(self, symbols=evolve(self.symbols, example=sizes))

    def at(self, sizes: Sizes) -> JointTrace:
        """Return the trace at some sizes."""
        return with_numbers(self.trace, self.mode, self.symbols.by_symbol(sizes))

    def outputs_at(self, sizes: Sizes) -> tuple[JointOutput, ...]:
        """Return the outputs at some sizes, of which those that are sizes are numbers."""
        return outputs_with_numbers(self.trace.outputs, self.symbols.by_symbol(sizes))

    def expressions(self) -> list[Any]:
        """Return the integer expressions in the graph of the sizes that vary, each once."""
        import torch
        from torch.utils import _pytree as pytree

        numbers: dict[Any, None] = {}
        for node in self.trace.module.graph.nodes:
            for item in pytree.tree_leaves(node.meta.get("val")):
                parts = item.shape if hasattr(item, "shape") else (item,)
                # Truth values and floats, such as what an output compares or divides, are no sizes.
                numbers.update((part.node.expr, None) for part in parts if isinstance(part, torch.SymInt))
        varied = [each.xreplace(self.symbols.fixed) for each in numbers]
        # Functions of numbers only may become numbers of Python.
        return [each for each in dict.fromkeys(varied) if getattr(each, "free_symbols", ())]


@frozen
class Samples:
    """The sizes at which a program is made, a size for each symbol that varies.

    Args:
        near: Those of the example times a factor, others that differ from these in one symbol each, and some that
            differ in all, as `ExpressionFitter` takes them.
        smaller: Small sizes and those between, the first of which counts at which the program is the same.
        larger: Large sizes and those between.
    """

    near: list[Sizes]
    smaller: list[Sizes]
    larger: list[Sizes]


def sampled(trace: SymbolicTrace, step: int, factor: int, reach: int) -> tuple[SymbolicTrace, Samples | None]:
    """Return a trace with the symbols that vary, and the sizes to make a program at; None if no symbol varies.

    A symbol with fewer than two other values stays as it is.

    Args:
        trace: The trace.
        step: Sizes are a multiple of it away from each other, and of the period of the guards.
        factor: What the sizes of the example are multiplied by, where the trace allows it.
        reach: What these are multiplied by for the largest sizes, where the trace allows it.
    """
    base, symbols = trace.symbols.example, trace.symbols
    step = lcm(step, trace.period())
    others: dict[int, list[int]] = {}

    def holds(sizes: Sizes) -> bool:
        """Return whether the trace is that at some sizes, none of which is 0 or 1, at which programs are others."""
        return min(sizes, default=2) > 1 and trace.holds(sizes)

    for number, size in enumerate(base):
        for start in dict.fromkeys((size * factor, size)):
            values = [start, *(start + step * each for each in _STEPS)]
            values = [value for value in values if holds(_changed(base, {number: value}))]
            if len(values) > 2 and values[0] == start:
                base, others[number] = _changed(base, {number: start}), values[1:]
                break
    alone = [_changed(base, {number: values[0]}) for number, values in others.items()]
    together = [_changed(base, {number: values[each] for number, values in others.items()}) for each in (1, -1)]
    together = [sizes for sizes in dict.fromkeys(together) if holds(sizes)]
    if not others or not together or not all(map(holds, alone)):
        return trace, None
    known = list(zip(symbols.symbols, symbols.example, strict=True))
    fixed = dict(pair for number, pair in enumerate(known) if number not in others)
    names, example = zip(*(known[number] for number in others), strict=True)
    symbols = evolve(symbols, symbols=names, example=example, fixed={**symbols.fixed, **fixed})

    def varied(sizes: Sizes) -> Sizes:
        """Return those of the sizes that vary."""
        return tuple(sizes[each] for each in others)

    def scaled(*factors: float) -> Sizes:
        """Return the sizes after each is multiplied by the first of some factors that the trace allows, if any."""
        sizes = base
        for number in others:
            for factor in factors:
                size = int(base[number] * factor) // step * step + base[number] % step
                changed = _changed(sizes, {number: size if size > 1 else size + step})
                if holds(changed):
                    sizes = changed
                    break
        return varied(sizes)

    return evolve(trace, symbols=symbols), Samples(
        list(map(varied, (base, *alone, *together))),
        [scaled(0), scaled(0.5)],
        [scaled(reach, *_FACTORS), scaled(2)],
    )


def _changed(sizes: Sizes, changes: Mapping[int, int]) -> Sizes:
    return tuple(changes.get(number, size) for number, size in enumerate(sizes))
