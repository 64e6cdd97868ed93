"""Sharding rules as one line of text: ``i k, k j -> i j``.

The notation is that of JAX's ``SdyShardingRule``. Tensors are separated by commas, dimensions by spaces; a dimension is
a factor, or a compound of factors in parentheses, major first. Factors have names of any length. ``...`` at the start
of a tensor stands for any number of leading dimensions, the same wherever it occurs; ``...1``, ``...2`` are others.
"""

from shardy_py.sharding.einsum.notation import rule
from shardy_py.sharding.einsum.spec import RuleSpec

__all__ = ["RuleSpec", "rule"]
