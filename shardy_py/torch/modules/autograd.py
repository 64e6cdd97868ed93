"""The two passes of a module on shards as one function of PyTorch's autograd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from shardy_py.torch.modules.splitting import SplitGraph


def make_function(graphs: SplitGraph, differentiable: Sequence[int], places: Sequence[int], size_count: int = 0) -> Any:
    """Return the function of some graphs; it takes the shards of all arguments and returns those of the outputs.

    It is a class of its own for each module, so that `torch.compile` sees its graphs as constants.

    Args:
        graphs: The passes.
        differentiable: The numbers of the outputs that have a gradient.
        places: The numbers of the arguments that the gradients belong to which the backward pass returns.
        size_count: How many sizes both passes take behind the tensors.
    """
    # Not as modules, which tools that follow modules would look for in the model.
    forward_pass, backward_pass, output_count = graphs.forward.forward, graphs.backward.forward, graphs.output_count
    without = [number for number in range(output_count) if number not in differentiable]
    needed = _needed_tangents(graphs.backward.graph, len(differentiable), size_count)
    argument_count = sum(node.op == "placeholder" for node in graphs.forward.graph.nodes)

    class Step(torch.autograd.Function):
        """The forward and the backward pass of a module on shards."""

        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            results = forward_pass(*tensors)
            outputs = tuple(results[:output_count])
            ctx.save_for_backward(*results[output_count:])
            ctx.sizes = tensors[argument_count - size_count :]
            ctx.mark_non_differentiable(*[outputs[number] for number in without])
            if not torch.compiler.is_compiling():
                # An output that no loss reads has no gradient, and what only it depends on has none either.
                ctx.set_materialize_grads(False)
                ctx.shapes = [(outputs[number].shape, outputs[number].dtype) for number in differentiable]
                ctx.device = outputs[0].device if outputs else None
            return outputs

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            tangents = [gradients[number] for number in differentiable]
            is_zero = [tangent is None for tangent in tangents]
            if any(is_zero):
                tangents = [
                    torch.zeros(shape, dtype=dtype, device=ctx.device) if tangent is None else tangent
                    for tangent, (shape, dtype) in zip(tangents, ctx.shapes, strict=True)
                ]
            computed = backward_pass(*ctx.saved_tensors, *tangents, *ctx.sizes)
            if not torch.compiler.is_compiling() and torch.is_grad_enabled():
                computed = _without_derivative(computed)
            argument_gradients: list[Any] = [None] * argument_count
            for place, gradient, numbers in zip(places, computed, needed, strict=True):
                if not numbers or not all(is_zero[number] for number in numbers):
                    argument_gradients[place] = gradient
            return tuple(argument_gradients)

    return Step


def _needed_tangents(graph: Any, count: int, size_count: int) -> list[frozenset[int]]:
    """Return the numbers of the gradients of outputs that each result of a backward pass depends on.

    Args:
        graph: The backward pass; it takes the gradients of outputs behind what is saved, and sizes behind these.
        count: How many outputs have a gradient.
        size_count: How many sizes there are.
    """
    placeholders = list(graph.find_nodes(op="placeholder"))
    end = len(placeholders) - size_count
    reached: dict[Any, frozenset[int]] = {
        node: frozenset((number,)) for number, node in enumerate(placeholders[end - count : end])
    }
    for node in graph.nodes:
        if node.op != "placeholder":
            reached[node] = frozenset().union(*(reached.get(operand, frozenset()) for operand in node.all_input_nodes))
    results = next(iter(graph.find_nodes(op="output"))).args[0]
    return [reached.get(node, frozenset()) if isinstance(node, torch.fx.Node) else frozenset() for node in results]


def _without_derivative(gradients: Sequence[Any]) -> Sequence[Any]:
    """Return gradients that were asked for with a graph; what computes a derivative of them gets an error."""
    message = "the gradients of a parallel module have no derivatives: compute a penalty of gradients in its loss"
    raised = torch._C._functions.DelayedError(message.encode(), len(gradients))
    results = raised(*[gradient.detach().requires_grad_() for gradient in gradients])
    return results if isinstance(results, tuple) else (results,)
