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
            return outputs

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            tangents = [gradients[number] for number in differentiable]
            computed = backward_pass(*ctx.saved_tensors, *tangents, *ctx.sizes)
            if not torch.compiler.is_compiling() and torch.is_grad_enabled():
                computed = _without_derivative(computed)
            argument_gradients: list[Any] = [None] * argument_count
            for place, gradient in zip(places, computed, strict=True):
                argument_gradients[place] = gradient
            return tuple(argument_gradients)

    return Step


def _without_derivative(gradients: Sequence[Any]) -> Sequence[Any]:
    """Return gradients that were asked for with a graph; what computes a derivative of them gets an error."""
    message = "the gradients of a parallel module have no derivatives: compute a penalty of gradients in its loss"
    raised = torch._C._functions.DelayedError(message.encode(), len(gradients))
    results = raised(*[gradient.detach().requires_grad_() for gradient in gradients])
    return results if isinstance(results, tuple) else (results,)
