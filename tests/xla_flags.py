"""Flags of XLA for processes that tests start."""

from __future__ import annotations

QUICK_CODE = "--xla_backend_optimization_level=0"
"""Machine code that is made in a fraction of the time; what stands in a program, and what it sends, stays the same."""

QUICK_JAX = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
"""The environment of processes of JAX that show what a program computes, not how fast."""
