"""Recurrent layers as PyTorch traces them, with the dropout between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def recurrent_dropout() -> Iterator[None]:
    """Trace the dropout between the layers of ``LSTM``, ``GRU`` and ``RNN``.

    What PyTorch calls in their place while it traces compares the number of the layer the wrong way round (2.9 to
    2.13, `_rnn_helper`), and never drops anything. Here it is called for one layer at a time.
    """
    import torch._decomp.decompositions as decompositions

    stacked = getattr(decompositions, "_rnn_helper", None)
    if stacked is None:
        yield
        return
    decompositions._rnn_helper = _layer_by_layer(stacked)
    try:
        yield
    finally:
        decompositions._rnn_helper = stacked


def _layer_by_layer(stacked: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    def run(
        sequence: Any,
        hidden: Sequence[Any],
        parameters: Sequence[Any],
        has_biases: bool,
        layer_count: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
        layer: Callable[..., Any],
    ) -> tuple[Any, list[Any]]:
        directions = 2 if bidirectional else 1
        last_states: list[Any] = []
        for number in range(layer_count):
            if number and train and dropout:
                sequence = torch.dropout(sequence, dropout, train=True)
            of_layer = slice(number * directions, (number + 1) * directions)
            sequence, states = stacked(
                *(sequence, hidden[of_layer], parameters[of_layer], has_biases, 1),
                *(0.0, train, bidirectional, batch_first, layer),
            )
            last_states += states
        return sequence, last_states

    return run
