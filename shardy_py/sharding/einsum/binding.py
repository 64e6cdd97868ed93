"""Dimensions and factor sizes of a rule text for given shapes."""

from __future__ import annotations

from math import prod
from typing import Any

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.sharding.einsum.text import Dim, TensorSpec, excerpt
from shardy_py.sharding.rule_builder import Shape
from shardy_py.sharding.unknown_size import STAND_IN_SIZE, is_known

Sizes = dict[str, int]

_DIFFERENT = "use two factors, or say that it needs replication, is permuted or blocked"


class Binding:
    """A rule text with the shapes of an op's tensors.

    Args:
        text: The text, for errors.
        operands: The dimensions of each operand in the text.
        results: Those of each result.
        operand_shapes: The shapes of the operands.
        result_shapes: Those of the results.

    Raises:
        RuleError: the op has another number of operands or results.
    """

    def __init__(
        self,
        text: str,
        operands: tuple[TensorSpec, ...],
        results: tuple[TensorSpec, ...],
        operand_shapes: tuple[Shape, ...],
        result_shapes: tuple[Shape, ...],
    ) -> None:
        self._text = text
        self._tensors = operands + results
        self._shapes = operand_shapes + result_shapes
        self._shown = f"operands {_shapes(operand_shapes)}; results {_shapes(result_shapes)}"
        self._places = [*_places("operand", operand_shapes), *_places("result", result_shapes)]
        sides = (("operand", operands, operand_shapes), ("result", results, result_shapes))
        for what, tensors, shapes in sides:
            if len(tensors) != len(shapes):
                raise self._error("rule-arity", f"the rule has {_count(len(tensors), what)}, the op {len(shapes)}")

    def _error(self, code: str, message: str, *, column: int = -1, hint: str = "") -> RuleError:
        """Return an error that shows rule, tensor and shapes."""
        shown = f"{excerpt(self._text, column)}\n{self._shown}"
        return RuleError(Diagnostic(code, message, hint=hint, excerpt=shown))

    def expand(self) -> list[tuple[Dim, ...]]:
        """Return the dimensions of each tensor, ellipses expanded.

        Raises:
            RuleError: a tensor has another rank.
        """
        ranks: dict[int, int] = {}
        tensors = []
        for tensor, shape, role in zip(self._tensors, self._shapes, self._places, strict=True):
            extra = len(shape) - len(tensor.dims)
            if extra < 0 or (extra and tensor.batch is None):
                least = "at least " if tensor.batch is not None else ""
                message = f"{role} has rank {len(shape)}, in the rule {least}{len(tensor.dims)}"
                raise self._error("rule-rank", message, column=tensor.column, hint=_spaced(tensor, len(shape)))
            if tensor.batch is None:
                tensors.append(tensor.dims)
                continue
            if ranks.setdefault(tensor.batch, extra) != extra:
                message = f"the ellipsis stands for {ranks[tensor.batch]} and, in {role}, for {extra} dimensions"
                hint = "number ellipses that are not the same: ...1, ...2"
                raise self._error("rule-rank", message, column=tensor.column, hint=hint)
            # Not a name a factor could have.
            batch = tuple(Dim(((f"...{tensor.batch}.{dim}", tensor.column),)) for dim in range(extra))
            tensors.append(tensor.dims[: tensor.before] + batch + tensor.dims[tensor.before :])
        return tensors

    def find_sizes(self, tensors: list[tuple[Dim, ...]], written_sizes: Sizes, may_differ: set[str]) -> Sizes:
        """Return the size of every factor.

        Args:
            tensors: The dimensions of each tensor, expanded.
            written_sizes: The sizes that are known without shapes.
            may_differ: The factors whose dimensions may have different sizes; the smallest counts.

        Raises:
            RuleError: sizes contradict each other.
        """
        sizes = dict(written_sizes)
        self._whole_dims(tensors, sizes, may_differ)
        dims = [
            (dim, size, role)
            for dims, shape, role in zip(tensors, self._shapes, self._places, strict=True)
            for dim, size in zip(dims, shape, strict=True)
        ]
        compounds = [(dim, size, role) for dim, size, role in dims if len(dim.factors) > 1 and is_known(size)]
        unknown = [dim for dim, size, _ in dims if not is_known(size)]
        if unknown:
            self._solve_all(compounds, sizes)
            for dim in unknown:
                for name in dim.names:
                    sizes.setdefault(name, STAND_IN_SIZE)
        waiting = compounds
        while waiting:
            waiting = [item for item in waiting if not self._solve(item[0], item[1], item[2], sizes)]
        for dim, size, role in compounds:
            self._check_product(dim, size, role, sizes)
        return sizes

    def _solve_all(self, compounds: list[tuple[Dim, int, str]], sizes: Sizes) -> None:
        """Find what follows from known sizes alone; the other factors of compounds have dimensions of unknown size."""
        count = -1
        while len(sizes) != count:
            count = len(sizes)
            for item in compounds:
                self._solve(*item, sizes)

    def _whole_dims(self, tensors: list[tuple[Dim, ...]], sizes: Sizes, may_differ: set[str]) -> None:
        """Add the sizes of factors that are whole dimensions."""
        written = set(sizes)
        first: dict[str, str] = {}
        may_differ = may_differ | {f"...{int(name[3:] or 0)}" for name in may_differ if name.startswith("...")}
        for dims, shape, role in zip(tensors, self._shapes, self._places, strict=True):
            for dim, size in zip(dims, shape, strict=True):
                if len(dim.factors) > 1 or not is_known(size):
                    continue
                ((name, column),) = dim.factors
                known = sizes.setdefault(name, size)
                where = first.setdefault(name, "as given" if name in written else f"in {role}")
                if known == size:
                    continue
                if may_differ.isdisjoint((name, name.rpartition(".")[0])):
                    shown = "a dimension of ..." if name.startswith("...") else f"factor {name}"
                    message = f"{shown} has size {known} {where}, but {size} in {role}"
                    raise self._error("rule-size", message, column=column, hint=_DIFFERENT)
                sizes[name] = min(known, size)

    def _solve(self, dim: Dim, size: int, role: str, sizes: Sizes) -> bool:
        """Find the size of the only unknown factor of a compound; return False where several are unknown."""
        unknown = [(name, column) for name, column in dim.factors if name not in sizes]
        if len(unknown) > 1:
            return False
        for name, column in unknown:
            rest = prod(sizes[other] for other in dim.names if other != name)
            if rest == 0 or size % rest:
                message = (
                    f"a dimension of {role} has size {size}, which {rest} does not divide: factor {name} has no size"
                )
                raise self._error("rule-size", message, column=column)
            sizes[name] = size // rest
        return True

    def _check_product(self, dim: Dim, size: int, role: str, sizes: Sizes) -> None:
        if prod(sizes[name] for name in dim.names) != size:
            shown = " * ".join(f"{name}={sizes[name]}" for name in dim.names)
            message = f"a dimension of {role} has size {size}, its factors {shown}"
            raise self._error("rule-size", message, column=dim.factors[0][1])


def _spaced(tensor: TensorSpec, rank: int) -> str:
    """Return a hint for dimensions that are written together, as in numpy's notation."""
    (name,) = tensor.dims[0].names if len(tensor.dims) == 1 and len(tensor.dims[0].names) == 1 else ("",)
    is_joined = tensor.batch is None and len(name) == rank > 1
    return f"dimensions are separated by spaces: {' '.join(name)!r}" if is_joined else ""


def _shapes(shapes: tuple[Shape, ...]) -> str:
    return ", ".join("x".join(map(str, shape)) or "scalar" for shape in shapes) or "none"


def _places(what: str, shapes: tuple[Any, ...]) -> list[str]:
    return [what] if len(shapes) == 1 else [f"{what} {number}" for number in range(len(shapes))]


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
