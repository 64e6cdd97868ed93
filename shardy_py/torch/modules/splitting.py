"""Joint graphs in two: the forward pass, which returns what it saves, and the backward pass.

The forward pass is what outputs need. What else does not need gradients of outputs belongs to the backward pass, and so
does a second copy of what checkpoints of activations let it compute again.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from shardy_py.torch.modules.checkpoints import recomputable_nodes
from shardy_py.values import frozen


@frozen(eq=False)
class SplitGraph:
    """The two passes of a joint graph.

    Args:
        forward: The forward pass; it takes what the joint graph takes but the gradients of outputs. It returns the
            outputs, then what it saves.
        backward: The backward pass; it takes what is saved, then the gradients of outputs. It returns gradients.
        inference: The forward pass without what it saves.
        output_count: How many outputs the forward pass has.
    """

    forward: Any
    backward: Any
    inference: Any
    output_count: int


def split_graph(
    graph: Any,
    tangent_count: int,
    output_count: int,
    written: Collection[int],
    checkpoints: Mapping[Any, int | None],
) -> SplitGraph:
    """Return the two passes of a graph.

    Args:
        graph: The joint graph. Its last placeholders are gradients of outputs.
        tangent_count: How many these are.
        output_count: How many of its outputs are those of the forward pass, the first ones.
        written: The numbers of inputs that are written to after the forward pass: their old values are saved.
        checkpoints: The checkpoint of activations that nodes are in.
    """
    import torch

    placeholders = list(graph.find_nodes(op="placeholder"))
    inputs = placeholders[: len(placeholders) - tangent_count]
    tangents = placeholders[len(inputs) :]
    results = list(next(iter(graph.find_nodes(op="output"))).args[0])
    outputs = _apart(graph, results[:output_count])
    in_forward = set(inputs) | _with_parts(_needed(outputs), set(graph.nodes))
    gradients = _owned(graph, results[output_count:], {*in_forward, *tangents})
    in_backward = [node for node in _in_order(graph, _needed(gradients)) if node not in in_forward]
    read = {operand for node in in_backward for operand in node.all_input_nodes}
    read |= {node for node in gradients if isinstance(node, torch.fx.Node)}
    read &= in_forward
    again = _needed(read, recomputable_nodes(graph, in_forward, checkpoints))
    read |= {operand for node in again for operand in node.all_input_nodes}
    saved = [node for node in graph.nodes if node in read and node not in again]
    ahead = [node for node in graph.nodes if node in in_forward and node.op not in ("placeholder", "output")]
    needed = _needed(outputs)
    old_values = {inputs[number] for number in written}
    forward = _module(inputs, ahead, [*outputs, *saved], "ForwardPass", copied=old_values.intersection(saved))
    inference = _module(inputs, [node for node in ahead if node in needed], outputs, "InferencePass")
    return SplitGraph(
        forward if saved else inference,
        _module([*saved, *tangents], _late(again, in_backward, gradients), gradients, "BackwardPass"),
        inference,
        output_count,
    )


def _late(again: Collection[Any], nodes: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """Return nodes in order with those that are computed again just before the first that reads them."""
    done: dict[Any, None] = {}

    def add(node: Any) -> None:
        left = [node]
        while left:
            missing = [item for item in left[-1].all_input_nodes if item in again and item not in done]
            if missing:
                left += reversed(missing)
            else:
                done.setdefault(left.pop())

    for node in (*nodes, *(item for item in results if item in again)):
        add(node)
    return list(done)


def _apart(graph: Any, outputs: Sequence[Any]) -> list[Any]:
    """Return the outputs, each repeated tensor cloned."""
    import torch

    distinct: list[Any] = []
    for node in outputs:
        if node in distinct and isinstance(node, torch.fx.Node):
            with graph.inserting_before(next(iter(graph.find_nodes(op="output")))):
                node = graph.call_function(torch.ops.aten.clone.default, (node,))
        distinct.append(node)
    return distinct


def _owned(graph: Any, gradients: Sequence[Any], others: Collection[Any]) -> list[Any]:
    """Return the gradients, each in memory of its own, as optimizers and clipping write to them in place.

    Args:
        graph: The joint graph.
        gradients: The gradients.
        others: The nodes whose memory is not that of gradients.
    """
    import torch

    owned: list[Any] = []
    seen: set[Any] = set()
    for node in gradients:
        views = list(_views(node)) if isinstance(node, torch.fx.Node) else []
        first_part = next((number for number, item in enumerate(views) if item.target is operator.getitem), -1)
        path = views[first_part:]
        meeting = next((number for number, item in enumerate(path) if item in seen), None)
        # Different parts of one division of a tensor are apart; those of two divisions overlap.
        is_apart = meeting is None or (meeting > 0 and path[meeting - 1].target is operator.getitem)
        is_expanded = any(item.target is torch.ops.aten.expand.default for item in views)
        if path and (is_expanded or not is_apart or path[-1] in others):
            with graph.inserting_before(next(iter(graph.find_nodes(op="output")))):
                node = graph.call_function(torch.ops.aten.clone.default, (node,))
        else:
            seen.update(path)
        owned.append(node)
    return owned


def _views(node: Any) -> Iterator[Any]:
    """Yield a node and, while these are views, the nodes whose memory it shows."""
    yield node
    while node.target is operator.getitem or _is_view(node.target):
        node = node.args[0]
        yield node


def _is_view(target: Any) -> bool:
    schema = getattr(target, "_schema", None)
    return schema is not None and any(item.alias_info is not None for item in schema.returns)


def _needed(results: Iterable[Any], among: Collection[Any] | None = None) -> set[Any]:
    """Return the nodes that some results are computed from, these included.

    Args:
        results: The results.
        among: The nodes at which the search does not end; None for all.
    """
    import torch

    left = [node for node in results if isinstance(node, torch.fx.Node)]
    needed: set[Any] = set()
    while left:
        node = left.pop()
        if node not in needed and (among is None or node in among):
            needed.add(node)
            left.extend(node.all_input_nodes)
    return needed


def _with_parts(needed: set[Any], nodes: Collection[Any]) -> set[Any]:
    """Return nodes with the results of those that have several, and of collectives that they start."""
    left = list(needed)
    while left:
        for user in left.pop().users:
            if user not in needed and user in nodes and _is_part(user):
                needed.add(user)
                left.append(user)
    return needed


def _is_part(node: Any) -> bool:
    return node.target is operator.getitem or str(node.target) == "_c10d_functional.wait_tensor.default"


def _in_order(graph: Any, nodes: Collection[Any]) -> list[Any]:
    return [node for node in graph.nodes if node in nodes and node.op not in ("placeholder", "output")]


def _module(
    placeholders: Sequence[Any], nodes: Sequence[Any], results: Sequence[Any], name: str, copied: Collection[Any] = ()
) -> Any:
    """Return the module with the graph of some nodes, which returns copies of some of its inputs."""
    import torch

    graph = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    for node in placeholders:
        copies[node] = graph.placeholder(node.name)
        copies[node].target = copies[node].name
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    for node in placeholders:
        if node in copied:
            copies[node] = graph.call_function(torch.ops.aten.clone.default, (copies[node],))
    graph.output(tuple(copies[node] if isinstance(node, torch.fx.Node) else node for node in results))
    return torch.fx.GraphModule({}, graph, name)
