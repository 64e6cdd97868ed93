"""Products of matrices whose batch dimensions a view merges, as ``matmul`` takes them apart: with all batch dimensions.

Attention that is written as ``q @ k.transpose(-2, -1)`` becomes ``bmm`` over batch times heads. A dimension that was
merged cannot be sharded along its minor part, the heads, alone; a product with both dimensions can.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from shardy_py.torch.frontend.types import as_number
from shardy_py.values import frozen

_PRODUCT = "aten.bmm.default"
_VIEWS = frozenset(("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default"))
_TURNS = frozenset(("aten.transpose.int", "aten.permute.default"))


@frozen(eq=False)
class Operand:
    """An operand of a product with its batch dimensions.

    Args:
        node: The node of the tensor that is viewed.
        is_turned: Whether its last two dimensions are swapped.
    """

    node: Any
    is_turned: bool


@frozen(eq=False)
class BatchedProducts:
    """The products of a graph that have several batch dimensions.

    Args:
        operands: Node that gives a product its batch dimensions back, to the operands of the product.
        skipped: The nodes that nothing else reads then.
    """

    operands: Mapping[Any, tuple[Operand, Operand]]
    skipped: Collection[Any]


def batched_products(nodes: Sequence[Any], excluded: Collection[Any]) -> BatchedProducts:
    """Return the products whose operands are views that merge batch dimensions, which all views of the results restore.

    Args:
        nodes: The nodes of a graph.
        excluded: Those that stay as they are.
    """
    operands: dict[Any, tuple[Operand, Operand]] = {}
    skipped: set[Any] = set()
    for node in nodes:
        if str(node.target) != _PRODUCT or node in excluded or not node.users:
            continue
        pair = _operand(node.args[0]), _operand(node.args[1])
        if None in pair or not all(_restores(user, node, pair) for user in node.users):
            continue
        operands |= dict.fromkeys(node.users, pair)
        skipped.add(node)
    read = {item.node for pair in operands.values() for item in pair}
    for node in reversed(nodes) if skipped else ():
        is_view = str(node.target) in _VIEWS | _TURNS and node not in read
        if is_view and node.users and all(user in skipped for user in node.users):
            skipped.add(node)
    return BatchedProducts(operands, skipped)


def _operand(node: Any) -> Operand | None:
    """Return the tensor that an operand is a view of, or None where it is none that merges batch dimensions."""
    is_turned = False
    while str(node.target) in _TURNS and _swaps_matrix(node):
        node, is_turned = node.args[0], not is_turned
    if str(node.target) not in _VIEWS:
        return None
    shape, before = _shape(node), _shape(node.args[0])
    is_merged = len(shape) == 3 and len(before) > 3 and before[-2:] == shape[1:]
    return Operand(node.args[0], is_turned) if is_merged and None not in before else None


def _swaps_matrix(node: Any) -> bool:
    rank = len(_shape(node))
    if str(node.target) == "aten.transpose.int":
        return rank == 3 and {dim % rank for dim in node.args[1:]} == {1, 2}
    return rank == 3 and [dim % rank for dim in node.args[1]] == [0, 2, 1]


def _restores(user: Any, product: Any, pair: Sequence[Operand | None]) -> bool:
    """Return whether a node gives a product the batch dimensions of both operands."""
    left, right = (_shape(item.node)[:-2] for item in pair if item is not None)
    is_view = str(user.target) in _VIEWS and user.args[0] is product
    return is_view and left == right and _shape(user) == (*left, *_shape(product)[1:])


def _shape(node: Any) -> tuple[Any, ...]:
    value: Any = getattr(node, "meta", {}).get("val")
    return tuple(map(as_number, value.shape)) if hasattr(value, "shape") else ()
