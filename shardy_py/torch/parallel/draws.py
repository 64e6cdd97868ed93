"""Random numbers on several devices: each draws those that one process would draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.program import Op
from shardy_py.torch.parallel.calls import operator_of

_Made = TypeVar("_Made")
_CHANCES = ("dropout_p", "dropout")
_TRAINED = ("train", "training")
_NO_OPERATORS = ("func", "higher_order", "sdy", "spmd")


def draws_numbers(op: Op) -> bool:
    """Return whether an op of a local program takes numbers from PyTorch's generator."""
    return op.name.partition(".")[0] not in _NO_OPERATORS and call_draws_numbers(op.name, op.attributes)


def call_draws_numbers(name: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a call of an operator takes numbers from PyTorch's generator.

    Args:
        name: The operator.
        arguments: Its arguments by name.
    """
    if any(arguments.get(trained) is False for trained in _TRAINED):
        return False
    chance = _chance_argument(name)
    return _is_random(name) if chance is None else bool(arguments.get(chance))


@cache
def _is_random(name: str) -> bool:
    import torch

    return torch.Tag.nondeterministic_seeded in operator_of(name).tags


@cache
def _chance_argument(name: str) -> str | None:
    """Return the argument of attention or of a recurrent layer that holds the chance of a dropout."""
    arguments = {argument.name for argument in operator_of(name)._schema.arguments}
    return next((name for name in _CHANCES if name in arguments), None)


def draw_alike(calls: Iterable[Callable[[], _Made]], torch_device: Any) -> list[_Made]:
    """Return what calls for several devices return; each begins with the generator as the first one does.

    Args:
        calls: One call for each device of this process.
        torch_device: The device of PyTorch whose generator they use.
    """
    state = None
    results = []
    for call in calls:
        if state is None:
            state = random_state(torch_device)
        else:
            _set_random_state(state, torch_device)
        results.append(call())
    return results


def random_state(torch_device: Any) -> Any:
    """Return the state of PyTorch's generator for a device, as a tensor of bytes."""
    import torch

    device = torch.device(torch_device)
    return torch.get_rng_state() if device.type == "cpu" else torch.get_device_module(device).get_rng_state(device)


def check_random_states(states: Sequence[Any]) -> None:
    """Check that the generators of all processes would draw the same numbers.

    Args:
        states: The state of each process.

    Raises:
        OptionError: one differs from that of the first process.
    """
    other = next((number for number, state in enumerate(states) if not state.equal(states[0])), None)
    if other is not None:
        message = f"the program draws random numbers, and the generators of the devices 0 and {other} differ in state"
        hint = "call torch.manual_seed with the same number on every process first"
        raise OptionError(Diagnostic("random-state", message, hint=hint))


def _set_random_state(state: Any, torch_device: Any) -> None:
    import torch

    device = torch.device(torch_device)
    if device.type == "cpu":
        torch.set_rng_state(state)
    else:
        torch.get_device_module(device).set_rng_state(state, device)
