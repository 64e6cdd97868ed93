"""The call graph with its orders of functions, and the def-use graph, as graphs of networkx."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardy_py.errors import Diagnostic, UnsupportedError, VerificationError
from shardy_py.ir.graph.attributes import SymbolRef
from shardy_py.ir.graph.op_names import CALL, FUNCTION
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.sharding.tensor import symbol

if TYPE_CHECKING:
    import networkx as nx


def callee_of(call: Op) -> str | None:
    """Return the name of the function a ``func.call`` calls, or None for any other op."""
    if call.name != CALL:
        return None
    callee = call.attributes.get("callee")
    return callee.name if isinstance(callee, SymbolRef) else str(callee).removeprefix("@")


def main_function(program: Program) -> Op | None:
    """Return the only function, or the one named ``main``; None for a module without functions.

    Raises:
        UnsupportedError: several functions, none of them ``main``.
    """
    functions = [op for op in program.body.ops if op.name == FUNCTION]
    if len(functions) < 2:
        return functions[0] if functions else None
    for function in functions:
        if function.attributes["sym_name"] == "main":
            return function
    names = ", ".join(f"@{function.attributes['sym_name']}" for function in functions)
    raise UnsupportedError(
        Diagnostic(
            "no-main-function",
            f"the module has several functions and none is named main: {names}",
            functions[0].location,
            hint="rename the entry function to main",
        )
    )


def call_graph(program: Program) -> nx.MultiDiGraph:
    """Return the call graph: a node per function name, an edge per call, in program order.

    Node attribute ``op`` is the function, edge attribute ``call`` the call.

    Raises:
        VerificationError: a function that does not exist is called.
    """
    import networkx as nx

    functions = program.functions
    graph = nx.MultiDiGraph()
    for name, function in functions.items():
        graph.add_node(name, op=function)
    unknown: list[Diagnostic] = []
    for name, function in functions.items():
        for op in function.walk():
            callee = callee_of(op)
            if callee is None:
                continue
            if callee in functions:
                graph.add_edge(name, callee, call=op)
            else:
                unknown.append(_unknown(op, callee))
    if unknown:
        raise VerificationError(*unknown)
    return graph


def callees_first(program: Program) -> list[str]:
    """Return the names of all functions, each after all it calls; otherwise in program order.

    Raises:
        UnsupportedError: functions call each other in a circle.
        VerificationError: a function that does not exist is called.
    """
    return _sorted(call_graph(program), callees_first=True)


def callers_first(program: Program) -> list[str]:
    """Return the names of all functions, each before all it calls; otherwise in program order.

    Raises:
        UnsupportedError: functions call each other in a circle.
        VerificationError: a function that does not exist is called.
    """
    return _sorted(call_graph(program), callees_first=False)


def _sorted(graph: nx.MultiDiGraph, *, callees_first: bool) -> list[str]:
    import networkx as nx

    check_no_recursion(graph)
    positions = {name: index for index, name in enumerate(graph)}
    ordered = graph.reverse(copy=False) if callees_first else graph
    return list(nx.lexicographical_topological_sort(ordered, key=positions.__getitem__))


def check_no_recursion(graph: nx.MultiDiGraph) -> None:
    """Check that no function calls itself, directly or through others.

    Raises:
        UnsupportedError: there is a circle; the error names its functions.
    """
    import networkx as nx

    try:
        cycle = nx.find_cycle(graph)
    except nx.NetworkXNoCycle:
        return
    path = " -> ".join(symbol(caller) for caller, *_ in cycle) + f" -> {symbol(cycle[0][0])}"
    call = graph.edges[cycle[0]]["call"]
    raise UnsupportedError(
        Diagnostic(
            "recursion",
            f"the functions call each other in a circle: {path}",
            location=call.location,
            op=call.name,
            hint="unroll the recursion, or use a loop op",
        )
    )


def _unknown(call: Op, callee: str) -> Diagnostic:
    return Diagnostic(
        "unknown-function",
        f"there is no function {symbol(callee)}",
        location=call.location,
        op=call.name,
    )


def to_networkx(program: Program) -> nx.MultiDiGraph:
    """Return the def-use graph of a program.

    Nodes are ``("op", id)`` and ``("value", id)``. Every node has ``kind``; an op node also ``name``, ``location`` and
    ``parent`` (the node of the op around it, or None), a value node ``type``, ``shape`` (None unless it is static),
    ``sharding`` (a `TensorSharding` or None) and ``index``. Edges go from an op to its results, from a value to the
    ops that use it with the operand ``number``, and from an op to the arguments of its regions, in program order; each
    has a ``role``: ``result``, ``operand`` or ``argument``.
    """
    import networkx as nx

    graph = nx.MultiDiGraph()
    for op in program.walk():
        _add_op(graph, program, op)
    for op in program.walk():
        for number, value in enumerate(op.operands):
            graph.add_edge(("value", value.id), ("op", op.id), role="operand", number=number)
    return graph


def _add_op(graph: nx.MultiDiGraph, program: Program, op: Op) -> None:
    node = ("op", op.id)
    parent = op.parent_op
    graph.add_node(node, kind="op", name=op.name, location=op.location, parent=("op", parent.id) if parent else None)
    for value in op.results:
        _add_value(graph, program, value)
        graph.add_edge(node, ("value", value.id), role="result", number=value.index)
    for region in op.regions:
        for block in region.blocks:
            for value in block.arguments:
                _add_value(graph, program, value)
                graph.add_edge(node, ("value", value.id), role="argument", number=value.index)


def _add_value(graph: nx.MultiDiGraph, program: Program, value: Value) -> None:
    graph.add_node(
        ("value", value.id),
        kind="value",
        type=str(value.type),
        shape=static_shape(value.type),
        sharding=program.shardings.get(value.id),
        index=value.index,
    )
