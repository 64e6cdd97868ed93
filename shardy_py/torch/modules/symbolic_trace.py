"""Modules that are traced with symbols for sizes of their inputs, and the graph at some sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve, field

from shardy_py.torch.frontend.types import is_symbolic
from shardy_py.torch.modules.joint import JointTrace
from shardy_py.torch.modules.size_expressions import Sizes
from shardy_py.values import frozen

Shapes = tuple[tuple[int, ...], ...]
_STEPS = (1, 2, 3, -2, -1)


@frozen(eq=False)
class SizeSymbols:
    """Sizes of inputs that are symbols: those that are equal in the same dimension of several inputs are one.

    Attributes:
        shapes: The shapes of the example inputs.
        symbols: Dimension and example size to the symbol of PyTorch.
        fixed: Symbol to size, for those that stay as in the example.
    """

    shapes: Shapes
    symbols: Mapping[tuple[int, int], Any]
    fixed: Mapping[Any, int] = {}

    @property
    def example(self) -> Sizes:
        """The sizes in the example."""
        return tuple(size for _, size in self.symbols)

    def sizes_of(self, shapes: Shapes) -> Sizes | None:
        """Return the sizes in some shapes, or None if these differ otherwise from the example's."""
        if [len(shape) for shape in shapes] != [len(shape) for shape in self.shapes]:
            return None
        sizes: dict[tuple[int, int], int] = {}
        for shape, example in zip(shapes, self.shapes, strict=True):
            for key, size in zip(enumerate(example), shape, strict=True):
                if sizes.setdefault(key, size) != size or (key not in self.symbols and size != key[1]):
                    return None
        return tuple(sizes[key] for key in self.symbols)

    def by_symbol(self, sizes: Sizes) -> dict[Any, int]:
        """Return symbol to size."""
        return {**self.fixed, **dict(zip(self.symbols.values(), sizes, strict=True))}


def make_symbols(shapes: Shapes, mode: Any) -> tuple[SizeSymbols, list[tuple[Any, ...]]]:
    """Return symbols for the sizes of inputs but 0 and 1, and the shapes with them.

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
    symbolic = [tuple(sizes.get(key, key[1]) for key in enumerate(shape)) for shape in shapes]
    return SizeSymbols(shapes, symbols), symbolic


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
        values = self.symbols.by_symbol(sizes)
        return min(sizes, default=2) > 1 and all(bool(guard.xreplace(values)) for guard in self.guards)

    def at(self, sizes: Sizes) -> JointTrace:
        """Return the trace at some sizes."""
        return _with_numbers(self.trace, self.mode, self.symbols.by_symbol(sizes))

    def expressions(self) -> list[Any]:
        """Return the expressions in the graph of the sizes that vary, each once."""
        from torch.utils import _pytree as pytree

        numbers: dict[Any, None] = {}
        for node in self.trace.module.graph.nodes:
            for item in pytree.tree_leaves(node.meta.get("val")):
                parts = item.shape if hasattr(item, "shape") else (item,)
                numbers.update((part.node.expr, None) for part in parts if is_symbolic(part))
        varied = [each.xreplace(self.symbols.fixed) for each in numbers]
        # Functions of numbers only may become numbers of Python.
        return [each for each in dict.fromkeys(varied) if getattr(each, "free_symbols", ())]


def sampled(trace: SymbolicTrace, step: int, factor: int) -> tuple[SymbolicTrace, list[Sizes]]:
    """Return a trace with the symbols that vary, and the sizes that `ExpressionFitter` takes.

    They are those of the example times a factor, others that differ from these in one symbol each, and some that differ
    in all. A symbol with fewer than two other values stays as it is; without any that varies there are no sizes.

    Args:
        trace: The trace.
        step: Sizes are a multiple of it away from each other.
        factor: What the sizes of the example are multiplied by, where the trace allows it.
    """
    base, symbols = trace.symbols.example, trace.symbols
    others: dict[int, list[int]] = {}
    for number, size in enumerate(base):
        for start in dict.fromkeys((size * factor, size)):
            values = [start, *(start + step * each for each in _STEPS)]
            values = [value for value in values if trace.holds(_changed(base, {number: value}))]
            if len(values) > 2 and values[0] == start:
                base, others[number] = _changed(base, {number: start}), values[1:]
                break
    alone = [_changed(base, {number: values[0]}) for number, values in others.items()]
    together = [_changed(base, {number: values[each] for number, values in others.items()}) for each in (1, -1)]
    together = [sizes for sizes in dict.fromkeys(together) if trace.holds(sizes)]
    if not others or not together or not all(map(trace.holds, alone)):
        return trace, []
    keys = list(symbols.symbols)
    fixed = {symbols.symbols[key]: key[1] for number, key in enumerate(keys) if number not in others}
    symbols = evolve(symbols, symbols={keys[each]: symbols.symbols[keys[each]] for each in others}, fixed=fixed)
    samples = [tuple(sizes[each] for each in others) for sizes in (base, *alone, *together)]
    return evolve(trace, symbols=symbols), samples


def _changed(sizes: Sizes, changes: Mapping[int, int]) -> Sizes:
    return tuple(changes.get(number, size) for number, size in enumerate(sizes))


def _with_numbers(trace: JointTrace, mode: Any, values: Mapping[Any, int]) -> JointTrace:
    """Return a trace with numbers in the places of symbols."""
    import torch
    from torch.utils import _pytree as pytree

    def number(item: Any) -> Any:
        if not is_symbolic(item):
            return item
        value = item.node.expr.xreplace(values)
        return {"SymInt": int, "SymFloat": float, "SymBool": bool}[type(item).__name__](value)

    def concrete(item: Any) -> Any:
        if not isinstance(item, torch.Tensor) or not any(map(is_symbolic, (*item.shape, *item.stride()))):
            return number(item)
        shape, stride = [tuple(map(number, each)) for each in (item.shape, item.stride())]
        with mode:
            return torch.empty_strided(shape, stride, dtype=item.dtype, device=item.device)

    graph = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    for node in trace.module.graph.nodes:
        value = node.meta.get("val")
        if is_symbolic(value) and node.op != "placeholder":
            copies[node] = number(value)
            continue
        copy = copies[node] = graph.node_copy(node, copies.__getitem__)
        if value is not None:
            copy.meta["val"] = pytree.tree_map(concrete, value)
    arguments = tuple((tuple(copies[node] for node in nodes), argument) for nodes, argument in trace.arguments)
    constants = {copies[node]: constant for node, constant in trace.constants.items()}
    module = torch.fx.GraphModule(trace.module, graph)
    return evolve(trace, module=module, arguments=arguments, constants=constants)
