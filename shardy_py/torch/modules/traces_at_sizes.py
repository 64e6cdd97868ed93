"""Traces with numbers in the places of symbols for sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from shardy_py.torch.frontend.types import is_symbolic
from shardy_py.torch.modules.joint import JointOutput, JointTrace


def with_numbers(trace: JointTrace, mode: Any, values: Mapping[Any, int]) -> JointTrace:
    """Return a trace at some sizes.

    Args:
        trace: The trace, with symbols for sizes.
        mode: The mode of its tensors without elements.
        values: Symbol to size.
    """
    module, copies = _graph_with_numbers(trace.module, mode, values)
    arguments = tuple((tuple(copies[node] for node in nodes), argument) for nodes, argument in trace.arguments)
    constants = {copies[node]: constant for node, constant in trace.constants.items()}
    outputs = outputs_with_numbers(trace.outputs, values)
    return evolve(trace, module=module, arguments=arguments, constants=constants, outputs=outputs)


def outputs_with_numbers(outputs: Sequence[JointOutput], values: Mapping[Any, int]) -> tuple[JointOutput, ...]:
    """Return outputs of a trace at some sizes: those that are sizes are numbers.

    Args:
        outputs: The outputs.
        values: Symbol to size.
    """
    return tuple(evolve(item, constant=_number(item.constant, values)) for item in outputs)


def _number(item: Any, values: Mapping[Any, int]) -> Any:
    if not is_symbolic(item):
        return item
    value = item.node.expr.xreplace(values)
    return {"SymInt": int, "SymFloat": float, "SymBool": bool}[type(item).__name__](value)


def _graph_with_numbers(module: Any, mode: Any, values: Mapping[Any, int]) -> tuple[Any, dict[Any, Any]]:
    """Return a module at some sizes with those nested in it, and node to its copy, or to the number that it is."""
    import torch
    from torch.utils import _pytree as pytree

    def concrete(item: Any) -> Any:
        if not isinstance(item, torch.Tensor) or not any(map(is_symbolic, (*item.shape, *item.stride()))):
            return _number(item, values)
        shape, stride = [tuple(_number(size, values) for size in sizes) for sizes in (item.shape, item.stride())]
        with mode:
            return torch.empty_strided(shape, stride, dtype=item.dtype, device=item.device)

    graph = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    nested: dict[str, Any] = {}
    for node in module.graph.nodes:
        value = node.meta.get("val")
        if is_symbolic(value) and node.op != "placeholder":
            copies[node] = _number(value, values)
            continue
        copy = copies[node] = graph.node_copy(node, copies.__getitem__)
        if value is not None:
            copy.meta["val"] = pytree.tree_map(concrete, value)
        inner = getattr(module, node.target, None) if node.op == "get_attr" else None
        if isinstance(inner, torch.fx.GraphModule):
            nested[node.target] = _graph_with_numbers(inner, mode, values)[0]
    changed = torch.fx.GraphModule(module, graph)
    for target, inner in nested.items():
        setattr(changed, target, inner)
    return changed, copies
