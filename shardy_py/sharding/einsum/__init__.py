"""Sharding rules as one line of text: ``i k, k j -> i j``.

The notation is that of JAX's ``SdyShardingRule``. Tensors are separated by commas, dimensions by spaces; a dimension is
a factor, or a compound of factors in parentheses, major first. Factors have names of any length. ``...`` stands for any
number of dimensions, the same wherever it occurs; ``...1``, ``...2`` are others. It may stand anywhere in a tensor, in
JAX at its start only.
"""

from typing import TYPE_CHECKING

from shardy_py.support.homes import look_up_in

if TYPE_CHECKING:
    from shardy_py.sharding.einsum.notation import rule
    from shardy_py.sharding.einsum.spec import RuleSpec

__all__ = ["RuleSpec", "rule"]

__getattr__ = look_up_in(__name__, {f"{__name__}.notation": "rule", f"{__name__}.spec": "RuleSpec"})
