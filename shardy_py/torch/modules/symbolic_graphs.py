"""Graphs of local programs for all sizes of inputs, from the graphs at some sizes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

from attrs import field

from shardy_py.torch.modules.size_expressions import ExpressionFitter, SizeExpression
from shardy_py.values import define


@define(eq=False, slots=False)
class GraphFitter:
    """Builder of graphs whose numbers are expressions of sizes.

    Attributes:
        numbers: The finder of the expressions.
        conditions: The expressions so far that are integers at some sizes only: the graphs are for these.
    """

    numbers: ExpressionFitter
    conditions: set[SizeExpression] = field(factory=set, init=False)

    def fit(self, values: Sequence[int]) -> SizeExpression | None:
        """Return the expression of a number by its values, and note when it is one."""
        expression = self.numbers.fit(values)
        if expression is not None and expression.denominator > 1:
            self.conditions.add(expression)
        return expression

    def module(self, modules: Sequence[Any]) -> Any:
        """Return the module of a graph that takes the sizes behind its tensors, or None if the given graphs differ.

        Args:
            modules: The module at each of the sizes.
        """
        import torch

        graphs = [list(module.graph.nodes) for module in modules]
        if len({len(nodes) for nodes in graphs}) > 1:
            return None
        graph = torch.fx.Graph()
        copies: dict[Any, Any] = {}
        numbers = _NumberNodes(graph, self.numbers.symbols)
        for nodes in zip(*graphs, strict=True):
            first = nodes[0]
            if len({(node.op, node.target if node.op == "call_function" else "") for node in nodes}) > 1:
                return None
            if first.op != "placeholder" and not numbers.sizes:
                numbers.add_sizes()
            arguments = self._arguments(nodes, copies, numbers)
            if arguments is None:
                return None
            args, kwargs = arguments
            copies.update(dict.fromkeys(nodes, graph.create_node(first.op, first.target, args, kwargs, first.name)))
        return torch.fx.GraphModule({}, graph, type(modules[0]).__name__)

    def _arguments(self, nodes: Sequence[Any], copies: dict[Any, Any], numbers: _NumberNodes) -> Any:
        from torch.utils import _pytree as pytree

        trees = [pytree.tree_flatten((node.args, node.kwargs)) for node in nodes]
        spec = trees[0][1]
        if any(each != spec for _, each in trees):
            return None
        leaves = []
        for items in zip(*(leaves for leaves, _ in trees), strict=True):
            values = [copies.get(item, item) if hasattr(item, "all_input_nodes") else item for item in items]
            leaf = self._leaf(values, numbers)
            if leaf is None and values[0] is not None:
                return None
            leaves.append(leaf)
        return pytree.tree_unflatten(leaves, spec)

    def _leaf(self, values: Sequence[Any], numbers: _NumberNodes) -> Any:
        """Return an argument by its values at the sizes, or None if they do not fit."""
        first = values[0]
        if all(type(value) is type(first) and (value is first or value == first) for value in values):
            return first
        if all(type(value) is int for value in values):
            expression = self.fit(values)
            return None if expression is None else numbers.node(expression)
        if all(type(value) is float for value in values):
            quotient = self.numbers.fit_quotient(values)
            return None if quotient is None else numbers.quotient(*quotient)
        return None


class _NumberNodes:
    """The nodes that compute numbers from the placeholders of sizes, each once."""

    def __init__(self, graph: Any, symbols: Sequence[Any]) -> None:
        self.sizes: dict[Any, Any] = {}
        self._graph = graph
        self._symbols = symbols
        self._nodes: dict[Any, Any] = {}

    def add_sizes(self) -> None:
        """Add the placeholders."""
        import torch

        for number, symbol in enumerate(self._symbols):
            self.sizes[symbol] = torch.fx.Proxy(self._graph.placeholder(f"size_{number}"))

    def node(self, expression: SizeExpression) -> Any:
        """Return the node of an expression."""
        if expression not in self._nodes:
            denominator = expression.denominator
            terms = [self._product(int(factor * denominator), each) for factor, each in expression.terms]
            terms += [int(expression.constant * denominator)] if expression.constant else []
            total = reduce(lambda left, right: self._call(operator.add, left, right), terms)
            self._nodes[expression] = total if denominator == 1 else self._call(operator.floordiv, total, denominator)
        return self._nodes[expression]

    def quotient(self, constant: float, divisor: Any) -> Any:
        """Return the node of a constant that is divided by an expression of SymPy."""
        key = constant, divisor
        if key not in self._nodes:
            self._nodes[key] = self._call(operator.truediv, constant, self._product(1, divisor))
        return self._nodes[key]

    def _product(self, factor: int, expression: Any) -> Any:
        """Return the node of an expression of SymPy times a number."""
        from torch.utils._sympy.interp import sympy_interp
        from torch.utils._sympy.reference import PythonReferenceAnalysis

        if expression not in self._nodes:
            self._nodes[expression] = sympy_interp(PythonReferenceAnalysis, self.sizes, expression).node
        node = self._nodes[expression]
        return node if factor == 1 else self._call(operator.mul, node, factor)

    def _call(self, target: Any, *args: Any) -> Any:
        return self._graph.call_function(target, args)
