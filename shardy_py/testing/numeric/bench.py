"""Running a function on shards and comparing with what it gives on whole tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import gcd
from typing import Any

import numpy as np
from attrs import field

from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import FactorKind
from shardy_py.support.arguments import parameter_names
from shardy_py.testing.numeric.operands import combine_arrays, identity_like
from shardy_py.testing.numeric.pieces import Array, Local, Piece, Sizes, Split, make_local
from shardy_py.values import frozen

Arrays = tuple[Array, ...]
MOST_PARTS = 16
_OF_SMALL_FLOATS = 2e-2


@frozen(eq=False)
class NumericTrial:
    """The operands of one run on whole tensors, and its results."""

    operands: Arrays
    results: Arrays


@frozen(eq=False)
class Bench:
    """A function to be run on shards.

    Args:
        function: Takes one array per operand, returns one array, or a tuple of several.
        combine: Makes one of what two devices along a reduction return; by default as the rule says.
        trials: Runs on whole tensors.
        shapes: The sizes of all operands, then of all results.
        rtol: How far elements may differ, relative to the largest one; None for what suits the element type.
        initial: The numbers of the operands that a reduction starts from: only the first device has them, the others
            have what changes nothing.
    """

    function: Callable[..., Any]
    combine: Callable[[Any, Any], Any] | None
    trials: tuple[NumericTrial, ...]
    shapes: tuple[Sizes, ...]
    rtol: float | None = None
    initial: tuple[int, ...] = ()
    _seen: dict[Any, str | None] = field(factory=dict, init=False, repr=False)

    @property
    def num_operands(self) -> int:
        """The number of operands."""
        return len(self.trials[0].operands)

    def attempt(self, pieces: Sequence[Piece], kind: FactorKind, combiner: Combiner = Combiner.ADD) -> str | None:
        """Shard some pieces, together, in each of several ways, and run the function.

        Args:
            pieces: At most one piece per tensor.
            kind: Whether the shards of the results are wanted from each device, or their combination.
            combiner: How the results of devices combine along a reduction.

        Returns:
            Why the results are not those of the whole tensors, or None if they are.
        """
        key = kind, combiner, tuple((piece.tensor, piece.dim, piece.outer, piece.size, piece.inner) for piece in pieces)
        if key not in self._seen:
            ways = splits([piece.size for piece in pieces])
            reasons = (self._run(trial, pieces, split, kind, combiner) for split in ways for trial in self.trials)
            self._seen[key] = next((reason for reason in reasons if reason), None)
        return self._seen[key]

    def _run(
        self, trial: NumericTrial, pieces: Sequence[Piece], split: Split, kind: FactorKind, combiner: Combiner
    ) -> str | None:
        parts = f"{len(split)}{'' if len(set(split)) == 1 else ' uneven ones'}"
        devices = [make_local(self.shapes, self.num_operands, pieces, split, part) for part in range(len(split))]
        returned = []
        for local in devices:
            shards = tuple(shard.of(array) for shard, array in zip(local.operands, trial.operands, strict=True))
            if kind is FactorKind.REDUCTION and local.part and self.initial:
                shards = self._started_elsewhere(shards, combiner)
            try:
                returned.append(call(self.function, shards, local))
            except Exception as error:  # whatever the function raises says that it cannot work on shards
                return f"the function fails on shard {local.part} of {parts}: {type(error).__name__}: {error}"
        if kind is FactorKind.REDUCTION:
            combine = partial(self._combine, combiner)
            try:
                combined = reduce(combine, [items if len(items) > 1 else items[0] for items in returned])
            except (TypeError, ValueError) as error:
                return f"the partial results cannot be combined by {combiner.value}: {error}"
            return self._compare(trial, trial.results, as_arrays(combined), f"combined over {parts} shards, ")
        for local, items in zip(devices, returned, strict=True):
            expected_shards = tuple(shard.of(array) for shard, array in zip(local.results, trial.results, strict=True))
            reason = self._compare(trial, expected_shards, items, f"on shard {local.part} of {parts}, ")
            if reason:
                return reason
        return None

    def _started_elsewhere(self, shards: Arrays, combiner: Combiner) -> Arrays:
        """Return the operands of a device on which the reduction does not start."""
        return tuple(
            identity_like(array, combiner) if number in self.initial else array for number, array in enumerate(shards)
        )

    def _combine(self, combiner: Combiner, left: Any, right: Any) -> Any:
        if self.combine is not None:
            return self.combine(left, right)
        if isinstance(left, tuple):
            return tuple(combine_arrays(combiner, one, other) for one, other in zip(left, right, strict=True))
        return combine_arrays(combiner, left, right)

    def _compare(self, trial: NumericTrial, expected_results: Arrays, actual_results: Arrays, where: str) -> str | None:
        if len(expected_results) != len(actual_results):
            return f"{where}there are {len(actual_results)} results instead of {len(expected_results)}"
        for number, (expected, actual) in enumerate(zip(expected_results, actual_results, strict=True)):
            reason = difference(expected, actual, whole_tensor=trial.results[number], rtol=self.rtol)
            if reason:
                return f"{where}result {number} {reason}"
        return None


def takes_local(function: Callable[..., Any]) -> bool:
    """Return whether a function has a parameter named ``local``."""
    return "local" in parameter_names(function)


def call(function: Callable[..., Any], operands: Arrays, local: Local | None) -> Arrays:
    """Call a function on copies of arrays, which it may change, and return its results as arrays."""
    operands = tuple(map(np.array, operands))
    with np.errstate(all="ignore"):
        return as_arrays(function(*operands, local=local) if takes_local(function) else function(*operands))


def as_arrays(returned: Any) -> Arrays:
    """Return what a function returned as arrays, one per result."""
    items = returned if isinstance(returned, tuple | list) else (returned,)
    return tuple(np.asarray(item) for item in items)


def splits(sizes: Sequence[int]) -> list[Split]:
    """Return ways to split dimensions: in as few equal parts as possible, in as many up to 16, in two uneven ones.

    >>> splits([6]), splits([6, 9]), splits([2]), splits([4, 3])
    ([(3, 3), (1, 1, 1, 1, 1, 1), (1, 5)], [(1, 1, 1), (1, 2)], [(1, 1)], [])
    """
    units = gcd(*sizes)
    counts = [count for count in range(2, min(units, MOST_PARTS) + 1) if units % count == 0]
    equal: list[Split] = [(units // count,) * count for count in sorted({*counts[:1], *counts[-1:]})]
    return [*equal, (1, units - 1)] if units > 2 else equal


def difference(expected: Array, actual: Array, *, whole_tensor: Array, rtol: float | None = None) -> str | None:
    """Return in what an array differs from the expected one, in words, or None.

    Args:
        expected: The expected array.
        actual: The other one.
        whole_tensor: The tensor the expected array is part of, whose largest element is the measure.
        rtol: See `Bench`.
    """
    if expected.shape != actual.shape:
        return f"has shape {_shape(actual)} instead of {_shape(expected)}"
    if expected.dtype.kind == "V":  # the small floating-point types of ml_dtypes
        expected, actual, whole_tensor = (array.astype(np.float32) for array in (expected, actual, whole_tensor))
        rtol = rtol or _OF_SMALL_FLOATS
    if np.issubdtype(expected.dtype, np.inexact):
        tolerance = rtol or tolerance_of(expected.dtype)
        finite = np.abs(whole_tensor[np.isfinite(whole_tensor)])
        scale = float(finite.max()) if finite.size else 1.0
        different = ~np.isclose(actual, expected, rtol=0, atol=tolerance * scale, equal_nan=True)
    else:
        different = actual != expected
    if not different.any():
        return None
    first = tuple(int(index[0]) for index in np.nonzero(np.atleast_1d(different)))[: expected.ndim]
    return (
        f"differs in {np.count_nonzero(different)} of {different.size} elements,"
        f" first at {list(first)}: {_number(actual[first])} instead of {_number(expected[first])}"
    )


def tolerance_of(dtype: Any) -> float:
    """Return how far numbers of a dtype may differ, relative to the largest one; 0 for integers."""
    if dtype.kind == "V":
        return _OF_SMALL_FLOATS
    if not np.issubdtype(dtype, np.inexact):
        return 0.0
    return {2: _OF_SMALL_FLOATS, 4: 1e-4}.get(np.zeros((), dtype).real.dtype.itemsize, 1e-8)


def _shape(array: Array) -> str:
    return "x".join(map(str, array.shape)) or "scalar"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, np.floating) else str(value)
