"""Attention whose scores a function of the module changes, as the operators that it is made of.

The fused operator holds its function as a graph over numbers of batch, head, query and key. Propagation and programs
on shards need these numbers as tensors: the number of a head on a device is not that of its shard.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

NAME = "flex_attention"


def made_of_operators(node: Any) -> tuple[Any, Sequence[Any]]:
    """Return the graph module of an attention, and the nodes of its inputs.

    Args:
        node: The node of the attention; its graph belongs to a module that has the functions.
    """
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    query, key, value, score, block_mask, scale, options, score_buffers, mask_buffers = (*node.args, (), ())[:9]
    module = node.graph.owning_module
    score, mask = (_graph_of(module, item) for item in (score, block_mask[-1]))
    inputs = [query, key, value, *score_buffers, *mask_buffers]
    dense = import_module("torch._higher_order_ops.flex_attention").math_attention

    def attend(query: Any, key: Any, value: Any, *buffers: Any) -> Any:
        first, second = buffers[: len(score_buffers)], buffers[len(score_buffers) :]
        with torch.no_grad():
            return dense(query, key, value, score, (*block_mask[:-1], mask), scale, options, first, second)

    like = [item.meta["val"] for item in inputs]
    examples = [torch.empty(tuple(map(int, item.shape)), dtype=item.dtype, device=item.device) for item in like]
    traced = make_fx(attend, tracing_mode="fake")(*examples)
    _make_scalars(traced)
    traced.graph.eliminate_dead_code()
    return traced, inputs


def _graph_of(module: Any, item: Any) -> Any:
    return getattr(module, item.target) if hasattr(item, "target") else item


def _make_scalars(module: Any) -> None:
    """Let a graph make the tensors of one number itself that it holds."""
    import torch

    for node in list(module.graph.find_nodes(op="get_attr")):
        tensor = getattr(module, node.target)
        if not isinstance(tensor, torch.Tensor) or tensor.numel() != 1:
            continue
        with module.graph.inserting_before(node):
            arguments = (list(tensor.shape), tensor.item())
            kwargs = {"dtype": tensor.dtype, "device": tensor.device}
            full = module.graph.call_function(torch.ops.aten.full.default, arguments, kwargs)
        full.meta["val"] = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")
        node.replace_all_uses_with(full)
        module.graph.erase_node(node)
