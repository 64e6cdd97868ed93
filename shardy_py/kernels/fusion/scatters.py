"""Scatters: where an update goes, whatever the order of the dimensions of indices and updates.

A kernel sees every scatter in the canonical form: indices (n, k), and n windows of updates with as many dimensions as
the operand. Maps lead from there to the tensors of the program, so that nothing is transposed or reshaped in memory:
``x.at[i].add(u)`` has updates (n, d), whose windows are (1, d) in the canonical form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from math import prod

from attrs import evolve, field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.indexing import Constant, Expression, IndexingMap, dim, op_maps
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.kernels.fusion.combiners import ScalarCombiner
from shardy_py.kernels.fusion.fusion import Fusion, IterationSpace, bits_of, element_type_of
from shardy_py.kernels.fusion.in_place import with_operand_copies
from shardy_py.values import frozen

_LIST = re.compile(r"(\w+)\s*=\s*\[([^\]]*)\]")
_NUMBER = re.compile(r"index_vector_dim\s*=\s*(\d+)")
_WINDOW, _INSERTED = "update_window_dims", "inserted_window_dims"
_TARGETS = "scatter_dims_to_operand_dims"
_OPERAND_BATCH, _INDEX_BATCH = "input_batching_dims", "scatter_indices_batching_dims"


@frozen
class ScatterForm:
    """The canonical form of a scatter.

    Args:
        count: The number of windows, n.
        targets: The dimension of the operand that each of the k components of an index shifts.
        window: The shape of a window, with a size of 1 along dimensions of the operand that it lacks.
        indices: The map from (n, k) to the index of a component.
        updates: The map from (n, window) to the index of an update.
        batches: Per batched dimension of the operand the map from n to the place of the window along it.
    """

    count: int
    targets: tuple[int, ...]
    window: tuple[int, ...]
    indices: IndexingMap
    updates: IndexingMap
    batches: tuple[tuple[int, IndexingMap], ...] = ()

    @property
    def components(self) -> int:
        """The number of components of an index, k."""
        return len(self.targets)

    @property
    def updates_shape(self) -> tuple[int, ...]:
        """The shape of the updates in the canonical form."""
        return (self.count, *self.window)

    @property
    def has_canonical_updates(self) -> bool:
        """True if the updates of the program have the canonical form."""
        return self.updates == op_maps.identity(self.updates_shape)

    @property
    def has_canonical_indices(self) -> bool:
        """True if the indices of the program have the canonical form."""
        return self.indices == op_maps.identity((self.count, self.components))


@frozen(eq=False, slots=False)
class RootScatter:
    """The scatter whose results are the roots of a fusion.

    Args:
        fusion: The fusion, with copies of the operands that the updates or indices are computed from.
        op: The scatter.
        form: Its form.
    """

    fusion: Fusion = field(repr=False)
    op: Op
    form: ScatterForm

    @property
    def indices(self) -> Value:
        """The indices."""
        return self.op.operands[len(self.op.results)]

    @property
    def updates(self) -> tuple[Value, ...]:
        """The updates for each operand."""
        return tuple(self.op.operands[len(self.op.results) + 1 :])

    @property
    def index_bits(self) -> int:
        """The bits of a component of an index."""
        return bits_of(element_type_of(self.indices))

    @property
    def update_bits(self) -> int:
        """The bits of an element of the updates for the first operand."""
        return bits_of(element_type_of(self.updates[0]))

    @cached_property
    def space(self) -> IterationSpace:
        """The space of the elements of the updates; a thread takes elements of one window."""
        shape = self.form.updates_shape
        space = self.fusion.space_of(self.updates[0], divisible=prod(shape[1:]))
        if self.form.has_canonical_updates:
            return space
        # Updates of another form are passed over in the order of windows, whatever their layout.
        return evolve(space, shape=shape, layout=tuple(reversed(range(len(shape)))))

    @cached_property
    def is_associative(self) -> bool:
        """True if updates may be combined in groups."""
        return ScalarCombiner(self.fusion, self.op).is_associative


def root_scatter(fusion: Fusion) -> RootScatter:
    """Return the scatter whose results are the roots of a fusion.

    Raises:
        UnsupportedError: an operand of it is not a parameter, the roots are not results of one scatter, or its
            attributes do not fit its operands.
    """
    op = fusion.producer(fusion.roots[0])
    assert op is not None
    form, problem = scatter_form(op), form_problem(op)
    if not problem and any(fusion.producer(root) is not op for root in fusion.roots):
        problem = "a kernel that updates memory by a scatter has no other results"
    if not problem and any(value.id not in fusion.parameter_ids for value in op.operands[: len(op.results)]):
        problem = "a kernel updates memory that it is given, its operand is computed"
    if problem or form is None:
        hint = "compute the operand in a kernel before this one: 'shardy emit FILE --list' shows pieces that are cut so"
        raise UnsupportedError(Diagnostic("scatter-form", problem, op.location, op.name, hint))
    return RootScatter(with_operand_copies(fusion, op), op, form)


def form_problem(op: Op) -> str:
    """Return why no kernel takes a scatter in its form; nothing where one does."""
    if scatter_form(op) is None:
        return "its dimension numbers do not fit its operands"
    updated = [value.id for value in op.operands[: len(op.results)]]
    if len(set(updated)) < len(updated):
        return "a kernel updates each operand in its own memory, one cannot be another one as well"
    if len(updated) > 1 and not has_unique_indices(op) and not has_separate_results(op):
        return "a kernel updates several operands at once only where no two windows overlap, or each by itself"
    return ""


def has_separate_results(op: Op) -> bool:
    """Return whether the region of a scatter combines each operand with its own updates alone."""
    (block,) = op.regions[0].blocks
    count = len(op.results)
    arguments = {value.id: number % count for number, value in enumerate(block.arguments)}
    for number, value in enumerate(block.terminator.operands if block.terminator else ()):
        pending = [value]
        while pending:
            current = pending.pop()
            if arguments.get(current.id, number) != number:
                return False
            pending += current.defining_op.operands if current.defining_op is not None else ()
    return True


def has_unique_indices(op: Op) -> bool:
    """Return whether no two windows of a scatter overlap."""
    return bool(op.attributes.get("unique_indices"))


def scatter_form(op: Op) -> ScatterForm | None:
    """Return the canonical form of a scatter of any number of operands, or None where its attributes do not fit it."""
    inputs = len(op.results)
    if len(op.operands) != 2 * inputs + 1:
        return None
    operand, indices, updates = (static_shape(op.operands[number].type) or () for number in (0, inputs, inputs + 1))
    text = str(op.attributes.get("scatter_dimension_numbers", ""))
    return _form(operand, indices, updates, text) if text else _form_without_numbers(operand, indices, updates)


@lru_cache(maxsize=1024)
def _form_without_numbers(
    operand: tuple[int, ...], indices: tuple[int, ...], updates: tuple[int, ...]
) -> ScatterForm | None:
    """Return the form of a scatter that has no attribute: indices and updates are canonical already."""
    if len(indices) != 2 or len(updates) != len(operand) + 1 or indices[0] != updates[0]:
        return None
    maps = op_maps.identity(indices), op_maps.identity(updates)
    return ScatterForm(updates[0], tuple(range(indices[1])), updates[1:], *maps)


@lru_cache(maxsize=1024)
def _form(
    operand: tuple[int, ...], indices: tuple[int, ...], updates: tuple[int, ...], text: str
) -> ScatterForm | None:
    lists = {name: tuple(map(int, re.findall(r"\d+", body))) for name, body in _LIST.findall(text)}
    number = _NUMBER.search(text)
    vector_dim = int(number[1]) if number else 0
    window_dims, targets = lists.get(_WINDOW, ()), lists.get(_TARGETS, ())
    batching = lists.get(_OPERAND_BATCH, ())
    lacking = {*lists.get(_INSERTED, ()), *batching}
    window_operand_dims = [number for number in range(len(operand)) if number not in lacking]
    index_dims = [number for number in range(len(indices)) if number != vector_dim]
    update_dims = [number for number in range(len(updates)) if number not in window_dims]
    sizes = [indices[number] for number in index_dims]
    if len(window_operand_dims) != len(window_dims) or sizes != [updates[number] for number in update_dims]:
        return None
    window = [1] * len(operand)
    for source, target in zip(window_dims, window_operand_dims, strict=True):
        window[target] = updates[source]
    count = prod(sizes)
    places = dict(zip(index_dims, _places(sizes), strict=True))
    has_vector = vector_dim < len(indices)
    if not has_vector and len(targets) != 1:
        return None
    index = tuple(dim(1) if number == vector_dim else places[number] for number in range(len(indices)))
    moved = dict(zip(window_dims, window_operand_dims, strict=True))
    batch_of = dict(zip(update_dims, (places[number] for number in index_dims), strict=True))
    update = tuple(dim(1 + moved[number]) if number in moved else batch_of[number] for number in range(len(updates)))
    batches = tuple(
        (target, IndexingMap.of_shape((count,), (places[source],)))
        for target, source in zip(batching, lists.get(_INDEX_BATCH, ()), strict=False)
    )
    return ScatterForm(
        count,
        targets,
        tuple(window),
        IndexingMap.of_shape((count, len(targets)), index),
        IndexingMap.of_shape((count, *window), update),
        batches,
    )


def _places(sizes: list[int]) -> Iterator[Expression]:
    """Yield the index along each of several dimensions, from the number of an element of them."""
    if len(sizes) == 1:
        yield dim(0)
        return
    strides = op_maps.strides_of(sizes)
    for number, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        if size == 1:
            yield Constant(0)
        else:
            divided = dim(0) // stride if stride > 1 else dim(0)
            yield divided % size if number else divided
