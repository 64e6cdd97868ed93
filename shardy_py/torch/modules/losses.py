"""Losses that PyTorch computes by reading data, as operators whose shapes do not depend on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_UNREACHABLE = -1e30
"""The logarithm of the probability of what cannot be: finite, so that its gradient is a number."""


def losses_without_checks() -> Any:
    """Return a context in which ``gaussian_nll_loss`` and ``ctc_loss`` can be traced.

    The first does not check that variances are positive. The second takes targets in rows; its gradient is that of the
    logarithms of probabilities, which through `log_softmax` is the same as PyTorch's.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    functional = torch.nn.functional
    losses: Mapping[Any, Callable[..., Any]] = {
        functional.gaussian_nll_loss: _gaussian_nll_loss,
        functional.ctc_loss: _ctc_loss,
    }

    class Losses(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return losses.get(function, function)(*args, **(kwargs or {}))

    return Losses()


def _gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    import torch

    var = torch.as_tensor(var, dtype=input.dtype)
    if var.dim() == input.dim() - 1 > 0:
        var = var.unsqueeze(-1)
    # The gradient passes the bound, as in PyTorch.
    bounded = var + (var.clamp(min=eps) - var).detach()
    loss = (bounded.log() + (input - target).square() / bounded) / 2
    if full:
        loss = loss + torch.log(torch.tensor(2 * torch.pi)).to(loss.dtype) / 2
    return _reduced(loss, reduction)


def _ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """Return the loss by the probabilities of all prefixes, one time after the other."""
    import torch

    is_single = log_probs.dim() == 2
    if is_single:
        log_probs, targets = log_probs.unsqueeze(1), targets.unsqueeze(0)
    if targets.dim() == 1:
        raise TypeError("ctc_loss takes targets in rows, of shape (N, S), with the lengths of the targets beside them")
    labels = targets.clamp(0, log_probs.shape[2] - 1)
    lengths = torch.as_tensor(input_lengths, device=targets.device).reshape(-1, 1)
    target_lengths = torch.as_tensor(target_lengths, device=targets.device).reshape(-1, 1)
    # A blank before each label, and one behind the last.
    blanks = torch.full_like(labels, blank)
    states = torch.stack([blanks, labels], -1).flatten(1)
    states = torch.cat([states, blanks[:, :1]], 1) if labels.shape[1] else torch.full_like(lengths, blank)
    emitted = log_probs.gather(2, states.expand(log_probs.shape[0], -1, -1))
    pad, width = torch.nn.functional.pad, states.shape[1]
    # A blank between labels may be left out if these differ.
    is_skip = pad((states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2]), (min(2, width), 0))
    start = torch.arange(width, device=states.device) < 2
    prefixes = torch.where(start, emitted[0], _UNREACHABLE)
    for time in range(1, log_probs.shape[0]):
        before = pad(prefixes, (2, 0), value=_UNREACHABLE)
        ways = [prefixes, before[:, 1:-1], torch.where(is_skip, before[:, :-2], _UNREACHABLE)]
        following = torch.logsumexp(torch.stack(ways), 0) + emitted[time]
        prefixes = torch.where(time < lengths, following, prefixes)
    last = prefixes.gather(1, 2 * target_lengths)
    before_last = prefixes.gather(1, (2 * target_lengths - 1).clamp(min=0))
    before_last = torch.where(target_lengths > 0, before_last, _UNREACHABLE)
    loss = -torch.logaddexp(last, before_last)
    loss = torch.where(loss > -_UNREACHABLE / 2, 0.0 if zero_infinity else torch.inf, loss)
    if reduction == "mean":
        loss = loss / target_lengths.clamp(min=1)
    loss = loss.squeeze(1)
    return _reduced(loss.squeeze(0) if is_single else loss, reduction)


def _reduced(loss: Any, reduction: str) -> Any:
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()
