"""Sharding rules before the shapes of the tensors are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from attrs import evolve, field

from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_inputs import HasShardableValues, Shape, as_shapes, tensor_shape, values_of
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.sharding.einsum.binding import Sizes
    from shardy_py.sharding.einsum.text import Dim, TensorSpec

KINDS = ("reduction", "need_replication", "permutation", "blocked", "pass_through")
EXCLUSIVE = ("reduction", "need_replication", "permutation", "pass_through")
Factors = tuple[str, ...]


@frozen(cache_hash=True)
class RuleSpec:
    """A sharding rule before the shapes are known; a rule function of an op, too.

    Made by `rule`. Sizes come from the shapes when it is bound to them.

    Args:
        text: The rule as it was written.
        operands: The dimensions of each operand.
        results: The dimensions of each result.
        sizes: The sizes that were given, by factor.
        reduction: The factors that are reduced over.
        need_replication: The factors that must be whole on each device.
        permutation: The factors that are moved along.
        blocked: Factors along which shardings do not propagate.
        pass_through: The factors that are said to pass through; others without a mark do so, too.
        combiners: The combiners of the reduced factors that are not summed.
        initial: The numbers of the operands that a reduction starts from.
        order: The factors that come first in the rule, in their order; the others follow as the text has them.
    """

    text: str
    operands: tuple[TensorSpec, ...] = field(repr=False)
    results: tuple[TensorSpec, ...] = field(repr=False)
    sizes: tuple[tuple[str, int], ...] = ()
    reduction: Factors = ()
    need_replication: Factors = ()
    permutation: Factors = ()
    blocked: Factors = ()
    pass_through: Factors = ()
    combiners: tuple[tuple[str, Combiner], ...] = ()
    initial: tuple[int, ...] = ()
    order: Factors = ()

    def bind(self, operand_shapes: Iterable[Shape], result_shapes: Iterable[Shape]) -> OpShardingRule:
        """Return the rule for the given shapes; () is the shape of a scalar and of anything that is not a tensor.

        Raises:
            RuleError: number, ranks or sizes of the tensors are not those of the rule.
        """
        operands, results = as_shapes(operand_shapes, "operand"), as_shapes(result_shapes, "result")
        if operands and results:
            return _bind(self, operands, results)
        spec = evolve(self, operands=_if_any(self.operands, operands), results=_if_any(self.results, results))
        return _bind(spec, operands, results)

    def __call__(self, op: HasShardableValues) -> OpShardingRule:
        """Return the rule of an op; so a spec is a rule function.

        Raises:
            RuleError: see `bind`.
        """
        values_of(op)
        return self.bind(map(tensor_shape, op.operands), map(tensor_shape, op.results))

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Operands, then results."""
        return self.operands + self.results

    @property
    def unmarked(self) -> Factors:
        """The factors of operands that no result has and that are not marked: most likely missing reductions."""
        marked = {name for kind in EXCLUSIVE for name in getattr(self, kind)}
        in_results = {name for tensor in self.results for name in names_in(tensor)}
        in_operands = dict.fromkeys(name for tensor in self.operands for name in names_in(tensor))
        return tuple(name for name in in_operands if name not in marked and name not in in_results)

    def __str__(self) -> str:
        sizes = "".join(f" {name}={size}" for name, size in self.sizes)
        words = {name: combiner.value for name, combiner in self.combiners}
        marks = {kind: getattr(self, kind) for kind in KINDS}
        marks["reduction"] = tuple(f"{name}:{words[name]}" if name in words else name for name in self.reduction)
        kinds = "".join(f" {kind}={{{', '.join(names)}}}" for kind, names in marks.items() if names)
        initial = f" initial={{{', '.join(map(str, self.initial))}}}" if self.initial else ""
        order = f" order={{{', '.join(self.order)}}}" if self.order else ""
        return f"{self.text}{sizes}{kinds}{initial}{order}"


def names_in(tensor: TensorSpec) -> Iterator[str]:
    """Yield the names in a tensor, an ellipsis among them."""
    if tensor.batch is not None:
        yield ellipsis(tensor.batch)
    for dim in tensor.dims:
        yield from dim.names


def ellipsis(batch: int) -> str:
    """Return an ellipsis as it is written.

    >>> ellipsis(0), ellipsis(2)
    ('...', '...2')
    """
    return f"...{batch or ''}"


def _if_any(tensors: tuple[TensorSpec, ...], shapes: tuple[Shape, ...]) -> tuple[TensorSpec, ...]:
    """Return no tensor for a side of the arrow where nothing is written, if the op has none there."""
    is_empty = len(tensors) == 1 and tensors[0].batch is None and not tensors[0].dims
    return () if is_empty and not shapes else tensors


@lru_cache(maxsize=4096)
def _bind(spec: RuleSpec, operand_shapes: tuple[Shape, ...], result_shapes: tuple[Shape, ...]) -> OpShardingRule:
    from shardy_py.sharding.einsum.binding import Binding

    binding = Binding(spec.text, spec.operands, spec.results, operand_shapes, result_shapes)
    tensors = binding.expand()
    may_differ = {*spec.need_replication, *spec.permutation, *spec.blocked}
    sizes = binding.find_sizes(tensors, dict(spec.sizes), may_differ)
    dims_of_tensors = [[_without_ones(dim, sizes) for dim in dims] for dims in tensors]
    indices = _first_indices(spec.order, dict.fromkeys(chain.from_iterable(chain.from_iterable(dims_of_tensors))))
    mappings = []
    for bound_dims in dims_of_tensors:
        mappings.append(tuple(tuple(indices.setdefault(name, len(indices)) for name in names) for names in bound_dims))
    reduction, need_replication, permutation, blocked = (
        tuple(sorted(index for name in getattr(spec, kind) for index in _indices(name, indices))) for kind in KINDS[:4]
    )
    combiners = ((index, combiner) for name, combiner in spec.combiners for index in _indices(name, indices))
    count = len(spec.operands)
    return OpShardingRule(
        factor_sizes=tuple(sizes[name] for name in indices),
        operand_mappings=tuple(mappings[:count]),
        result_mappings=tuple(mappings[count:]),
        reduction_factors=reduction,
        need_replication_factors=need_replication,
        permutation_factors=permutation,
        blocked_propagation_factors=blocked,
        combiners=tuple(sorted(combiners, key=lambda item: item[0])),
        initial_operands=spec.initial,
    )


def _first_indices(order: Factors, names: Iterable[str]) -> dict[str, int]:
    """Return the numbers of the factors that come first.

    Args:
        order: Their names, in order.
        names: All factors.
    """
    indices: dict[str, int] = {}
    known = {name: number for number, name in enumerate(names)} if order else {}
    for name in order:
        for factor in sorted(_indices(name, known)):
            indices.setdefault(list(known)[factor], len(indices))
    return indices


def _indices(name: str, indices: dict[str, int]) -> list[int]:
    """Return the factors of a name: none of size 1 in a compound, all dimensions of an ellipsis."""
    if not name.startswith("..."):
        return [indices[name]] if name in indices else []
    start = f"...{int(name[3:] or 0)}."
    return [index for factor, index in indices.items() if factor.startswith(start)]


def _without_ones(dim: Dim, sizes: Sizes) -> list[str]:
    """Return the factors of a dimension but those of size 1, which a compound cannot have."""
    return [name for name in dim.names if sizes[name] != 1] or [dim.names[0]]
