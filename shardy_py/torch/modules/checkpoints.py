"""Activation checkpoints: which nodes of a graph the backward pass computes again, in place of what is saved."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.program import Program
from shardy_py.torch.frontend.calls import schema_arguments
from shardy_py.torch.modules.graph_module import GraphBuilder
from shardy_py.torch.parallel.draws import call_draws_numbers
from shardy_py.torch.parallel.localized import Localized

_REGION = "sdy_checkpoint"
"""The key of the metadata of a node with the number of the checkpoint that it is in."""
_SAVED = ("MUST_SAVE", "PREFER_SAVE")
"""The policies of selective checkpoints under which the result of an operator is saved."""


@contextmanager
def checkpoints_noted() -> Iterator[dict[str, Diagnostic]]:
    """Trace modules so that nodes know the checkpoint that they are in; yield a warning for each other kind of hooks.

    A graph calls no hooks on saved tensors, by which PyTorch implements checkpoints: they are only noted.
    """
    import torch.utils.checkpoint
    from torch.autograd.graph import saved_tensors_hooks

    warnings: dict[str, Diagnostic] = {}
    regions = _Regions()
    enter, leave = saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__
    reentrant = torch.utils.checkpoint.CheckpointFunction

    def noted_enter(hooks: Any) -> Any:
        kind = type(hooks).__name__
        if kind == "_checkpoint_hook":
            regions.enter()
        else:
            message = f"the hooks {kind} have no effect: saved tensors stay on the device as they are"
            hint = "count the memory of activations as without it"
            warnings.setdefault(kind, Diagnostic("hooks-not-called", message, hint=hint))
        return enter(hooks)

    def noted_leave(hooks: Any, *error: Any) -> Any:
        if type(hooks).__name__ == "_checkpoint_hook":
            regions.leave()
        return leave(hooks, *error)

    class Reentrant:
        """The other implementation of checkpoints, whose backward pass no graph has."""

        @staticmethod
        def apply(function: Any, preserve_rng_state: bool, *args: Any) -> Any:
            regions.enter()
            try:
                return function(*args)
            finally:
                regions.leave()

    try:
        saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__ = noted_enter, noted_leave
        torch.utils.checkpoint.CheckpointFunction = Reentrant
        yield warnings
    finally:
        saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__ = enter, leave
        torch.utils.checkpoint.CheckpointFunction = reentrant


class _Regions:
    """The checkpoints that are entered while a module is traced."""

    def __init__(self) -> None:
        self.count = 0
        self.entered: list[tuple[Any, int]] = []

    def enter(self) -> None:
        """Begin a checkpoint."""
        graph = _traced_graph()
        self.entered.append((graph, 0 if graph is None else len(graph.nodes)))

    def leave(self) -> None:
        """Mark the nodes since the begin of the innermost checkpoint; the outermost one is the last to do so."""
        graph, before = self.entered.pop()
        if graph is None:
            return
        self.count += 1
        for node in list(graph.nodes)[before:]:
            policy = node.meta.get("recompute")
            if getattr(policy, "name", "") not in _SAVED:
                node.meta[_REGION] = self.count


def _traced_graph() -> Any:
    """Return the graph that is being traced, or None."""
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    mode = get_proxy_mode()
    return None if mode is None else mode.tracer.graph


def has_checkpoints(traced: Any) -> bool:
    """Return whether nodes of a traced graph are in checkpoints."""
    return any(_REGION in node.meta for node in traced.nodes)


def checkpoint_regions(
    traced: Any, explicit: Program, localization: Localized, builder: GraphBuilder
) -> dict[Any, int | None]:
    """Return the checkpoint that nodes of a local graph are in, or None, for those that stand for a traced node.

    Args:
        traced: The traced graph.
        explicit: The program with collectives that was made of it.
        localization: The local program.
        builder: The builder of the graph of the local program.
    """
    by_name = {node.name: node.meta[_REGION] for node in traced.nodes if _REGION in node.meta}
    known: dict[Any, int | None] = {}
    for number, name in explicit.origin.node_names.items() if by_name else ():
        local = localization.values.get(number)
        node = None if local is None else builder.node_of(local.value)
        if node is not None:
            known.setdefault(node, by_name.get(name.partition("/")[0].partition("#")[0]))
    return known


def recomputable_nodes(graph: Any, forward: Collection[Any], known: Mapping[Any, int | None]) -> set[Any]:
    """Return the nodes of a forward pass that the backward pass may compute again.

    Args:
        graph: The graph of both.
        forward: The nodes of the forward pass.
        known: The checkpoints of nodes, as `checkpoint_regions` returns them.
    """
    regions: dict[Any, int | None] = {}
    drawn: set[Any] = set()
    for node in reversed(graph.nodes) if known else ():
        if node in forward and node.op == "call_function":
            # A node of its own, such as a collective, is where all that read it are.
            reading = {regions.get(user) for user in node.users if user in forward}
            regions[node] = known[node] if node in known else next(iter(reading)) if len(reading) == 1 else None
    for node in graph.nodes:
        operands = node.all_input_nodes
        if node in regions and (_draws(node) or (operands and all(item in drawn for item in operands))):
            # Other numbers would come; what is made of these alone, such as a mask, is saved in their place.
            drawn.add(node)
    return {
        node
        for node, region in regions.items()
        if region is not None
        and node not in drawn
        # What leaves the checkpoint is saved, if it is needed.
        and all(regions.get(user) == region for user in node.users if user in forward)
    }


def _draws(node: Any) -> bool:
    if not hasattr(node.target, "_schema"):
        return False
    return call_draws_numbers(str(node.target), schema_arguments(node.target, node.args, node.kwargs))
