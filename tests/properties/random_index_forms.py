"""Random forms of gathers and scatters: which dimensions are collapsed, batched or indexed, and in which order."""

from __future__ import annotations

import random
from collections.abc import Sequence

import attrs


@attrs.frozen
class IndexForm:
    """A form of a gather or scatter, in the terms of gather.

    Attributes:
        sizes: The shape of the slices that are read of the operand.
        collapsed: The operand's dimensions that slices lack.
        batching: The batched dimensions of the operand.
        indices_batching: Those of the indices, in the same order.
        start_index_map: The operand's dimension of every component of an index.
        indices_shape: The shape of the indices.
        vector_dim: The dimension of the components; the number of dimensions where an element is an index.
        offset_dims: The dimensions of the slices in the result.
        result_shape: The shape of the result.
    """

    sizes: tuple[int, ...]
    collapsed: tuple[int, ...]
    batching: tuple[int, ...]
    indices_batching: tuple[int, ...]
    start_index_map: tuple[int, ...]
    indices_shape: tuple[int, ...]
    vector_dim: int
    offset_dims: tuple[int, ...]
    result_shape: tuple[int, ...]

    def attribute(self, names: Sequence[str]) -> str:
        """The fields of the attribute, by the names that gather or scatter has for them."""
        lists = (self.offset_dims, self.collapsed, self.batching, self.indices_batching, self.start_index_map)
        texts = [f"{name} = {[*dims]}" for name, dims in zip(names, lists, strict=True) if dims]
        return ", ".join([*texts, f"index_vector_dim = {self.vector_dim}"])

    @property
    def gather(self) -> str:
        """The attribute of a gather."""
        names = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims")
        return self.attribute((*names, "start_index_map"))

    @property
    def scatter(self) -> str:
        """The attribute of a scatter."""
        names = ("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims")
        return self.attribute((*names, "scatter_dims_to_operand_dims"))


def random_form(numbers: random.Random, shape: Sequence[int], counts: Sequence[int]) -> IndexForm:
    """A form for an operand of a shape.

    Args:
        numbers: The random numbers.
        shape: The shape of the operand; it has a dimension.
        counts: The numbers of indices that a dimension of them may have.
    """
    roles = [numbers.choice("wwwccb") for _ in shape]
    if all(role == "b" for role in roles):
        roles[0] = "c"
    batching = tuple(number for number, role in enumerate(roles) if role == "b")
    collapsed = tuple(number for number, role in enumerate(roles) if role == "c")
    window = [number for number, role in enumerate(roles) if role == "w"]
    sizes = [1] * len(shape)
    for number in window:
        sizes[number] = numbers.choice((shape[number], numbers.randint(1, shape[number])))
    indexed = [number for number in range(len(shape)) if number not in batching]
    targets = tuple(numbers.sample(indexed, numbers.randint(1, len(indexed))))
    # Dimensions of the indices but that of the components: batched ones by their number in the operand, others None.
    places = [*batching, *[None] * numbers.choice((0, 1, 1, 2))]
    numbers.shuffle(places)
    batch_sizes = [numbers.choice(tuple(counts)) if number is None else shape[number] for number in places]
    is_implicit = len(targets) == 1 and numbers.random() < 0.4
    vector_dim = len(places) if is_implicit else numbers.randint(0, len(places))
    indices_shape = list(batch_sizes)
    if not is_implicit:
        indices_shape.insert(vector_dim, len(targets))
    offsets = sorted(numbers.sample(range(len(places) + len(window)), len(window)))
    slices, batches = iter(sizes[number] for number in window), iter(batch_sizes)
    result = [next(slices) if number in offsets else next(batches) for number in range(len(places) + len(window))]

    def of_indices(place: int) -> int:
        return place if is_implicit or place < vector_dim else place + 1

    return IndexForm(
        tuple(sizes),
        collapsed,
        batching,
        tuple(of_indices(places.index(number)) for number in batching),
        targets,
        tuple(indices_shape),
        vector_dim,
        tuple(offsets),
        tuple(result),
    )
