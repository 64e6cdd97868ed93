"""A traced graph of dataclasses, and the frontend that reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import shardy_py as sdy
from shardy_py.ir import Program, Value


@dataclass(eq=False)
class Node:
    """A tensor of a traced graph; an input has no op."""

    op: str
    inputs: tuple[Node, ...]
    shape: tuple[int, ...]
    spec: str = ""


@dataclass(eq=False)
class Graph:
    """What a function computes."""

    inputs: list[Node]
    output: Node


class GraphFrontend(sdy.Frontend):
    """Reads graphs, and writes the shardings to ``Node.spec``."""

    name = "toy-graph"

    def accepts(self, source: object) -> bool:
        """Return whether this is a graph."""
        return isinstance(source, Graph)

    def import_program(self, source: Graph) -> Program:
        """Return the op graph."""
        builder = sdy.Builder(mesh=sdy.Mesh.of(a=2, b=2))
        values: dict[Node, Value] = {}
        with builder.function("main", [sdy.tensor(*node.shape) for node in source.inputs]) as arguments:
            values.update(zip(source.inputs, arguments, strict=True))

            def visit(node: Node) -> Value:
                if node not in values:
                    operands = [visit(item) for item in node.inputs]
                    values[node] = builder.op(f"toy.{node.op}", operands, [sdy.tensor(*node.shape)])
                return values[node]

            builder.return_(visit(source.output))
        for node, value in values.items():
            if node.spec:
                builder.shard(value, node.spec)
        builder.program.origin = source, {node: value.id for node, value in values.items()}
        return builder.program

    def write_back(self, program: Program) -> Graph:
        """Write the shardings to the nodes."""
        graph, ids = program.origin
        for node, number in ids.items():
            sharding = program.shardings.get(number)
            node.spec = str(sharding) if sharding else ""
        return graph

    def print_text(self, source: Any) -> str:
        """Return one line per node."""
        return f"{source.output.op}: {source.output.spec}\n"


TOY = sdy.Dialect("toy")
TOY.op("toy.matmul", rule="i k, k j -> i j", reduction=("k",))
TOY.op("toy.relu", traits=[sdy.Elementwise])


class Plugin:
    """The plugin with both."""

    @sdy.hookimpl
    def shardy_register_dialects(self) -> list[sdy.Dialect]:
        """Return the dialect."""
        return [TOY]

    @sdy.hookimpl
    def shardy_register_frontends(self) -> list[sdy.Frontend]:
        """Return the frontend."""
        return [GraphFrontend()]


def graph() -> Graph:
    """Return ``relu(x @ w)``."""
    x, w = Node("input", (), (8, 16), '[{"a"}, {}]'), Node("input", (), (16, 4))
    return Graph([x, w], Node("relu", (Node("matmul", (x, w), (8, 4)),), (8, 4)))
