"""The programs that the researcher's scripts and the notebook look at, those of ``compare_schedules.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compare_schedules import BLOCK, MIXTURE, mixture_of_experts, train_step, transformer_block


def make_mixture() -> str:
    """Return a training step of a mixture of experts: 241 tensors, tokens and experts split over one axis."""
    return train_step(mixture_of_experts, MIXTURE)


def make_block() -> str:
    """Return a training step of a transformer block, whose weights are split over both axes."""
    return train_step(transformer_block, BLOCK)
