"""Graphs without effect tokens: the tensors with which PyTorch keeps checks and prints in order while it traces.

An operator with an effect is traced as ``with_effects(token, operator, *arguments)``, which returns the next token
before the results. The order of nodes says the same.
"""

from __future__ import annotations

from typing import Any


def drop_effect_tokens(graph: Any) -> None:
    """Call operators with effects as others are, and remove the tokens from the inputs and outputs of a joint graph.

    Args:
        graph: The graph; its placeholders and its output have the descriptions of PyTorch.
    """
    for node in list(graph.nodes):
        if node.op == "call_function" and str(node.target) == "with_effects":
            _call_without_token(graph, node)
    output = next(iter(graph.find_nodes(op="output")))
    described = list(output.meta["desc"])
    nodes = list(output.args[0])
    described += [None] * (len(nodes) - len(described))
    outputs = [pair for pair in zip(nodes, described, strict=True) if not _is_token(pair[1])]
    if len(outputs) == len(nodes):
        return
    output.args = (tuple(node for node, _ in outputs),)
    output.meta["desc"] = [description for _, description in outputs]
    for node in graph.find_nodes(op="placeholder"):
        if _is_token(node.meta["desc"]):
            graph.erase_node(node)


def _call_without_token(graph: Any, node: Any) -> None:
    token, target, *arguments = node.args
    with graph.inserting_before(node):
        call = graph.call_function(target, tuple(arguments), node.kwargs)
    _, *values = node.meta["val"]
    result_count = len(target._schema.returns)
    has_one_result = result_count == 1
    # An operator that only checks returns nothing, and has None beside the token.
    value = None if not result_count else values[0] if has_one_result else tuple(values)
    call.meta = {**node.meta, "val": value}
    for user in list(node.users):
        number = user.args[1]
        if number and not has_one_result:
            user.args = call, number - 1
            continue
        user.replace_all_uses_with(call if number else token)
        graph.erase_node(user)
    if not node.users:
        graph.erase_node(node)


def _is_token(description: Any) -> bool:
    return "TokenAOT" in type(description).__name__
