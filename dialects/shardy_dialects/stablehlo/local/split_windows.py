"""Windows of a scatter as single elements along a sharded dimension: each device writes those that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardy_dialects.stablehlo.attributes import DimensionNumbers, parse_dimension_numbers
from shardy_dialects.stablehlo.local.indices import IndexVectors, is_inside, on_device
from shardy_dialects.stablehlo.local.windows import Cut
from shardy_dialects.stablehlo.local.writer import Writer, resized
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import tensor
from shardy_py.values import frozen

_LISTS = (
    *("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims"),
    "scatter_dims_to_operand_dims",
)


@frozen(eq=False)
class SplitWindows:
    """A scatter of windows, of which one dimension may become a dimension of the indices.

    Args:
        writer: Where the ops go.
        numbers: The dimension numbers.
        indices: The indices.
        updates: The updates.
    """

    writer: Writer
    numbers: DimensionNumbers
    indices: Value
    updates: Sequence[Value]

    @property
    def attribute(self) -> RawAttribute:
        """The dimension numbers as an attribute."""
        lists = [f"{name} = {list(self.numbers.dims(name))}" for name in _LISTS if self.numbers.dims(name)]
        last = f"index_vector_dim = {self.numbers.number('index_vector_dim')}"
        return RawAttribute(f"#stablehlo.scatter<{', '.join([*lists, last])}>")

    def along(self, cut: Cut) -> SplitWindows:
        """Return the scatter whose updates are single elements along a sharded dimension of the operand.

        A window that does not lie in the whole operand writes nothing: its elements get places outside.
        """
        numbers, writer, op = self.numbers, self.writer, cut.shard.op
        dim = window_dims(op, numbers)[cut.dim]
        window = numbers.dims("update_window_dims")
        position = sum(other not in window for other in range(dim))
        mapped = numbers.dims("scatter_dims_to_operand_dims")
        vectors = IndexVectors(self.indices, numbers.number("index_vector_dim"), mapped)
        count, size = self.updates[0].shape[dim], op.operands[0].shape[cut.dim]
        start = vectors.component(writer, mapped.index(cut.dim))
        inside = is_inside(writer, start, size - count + 1)
        shape = (*vectors.shape[:position], count, *vectors.shape[position:])
        other_dims = [number for number in range(len(shape)) if number != position]
        wide = tensor(*shape, dtype="i64")
        number = writer.spread(writer.counter(count, "i64"), wide, [position])
        place = writer.binary("add", writer.spread(start, wide, other_dims), number)
        place = on_device(writer, place, cut, cut.shard.operands[0].shape[cut.dim])
        outside = writer.spread(writer.integer(-1, place), resized(place, {}))
        mask = writer.spread(inside, tensor(*shape, dtype="i1"), other_dims)
        place = writer.emit.op("stablehlo.select", [mask, place, outside], [place.type]).result
        components = {
            component: place
            if other == cut.dim
            else writer.spread(vectors.component(writer, component), wide, other_dims)
            for component, other in enumerate(mapped)
        }
        rows = [(n, writer.ops.reshape(writer.emit, components[n], (*shape, 1))) for n in range(len(mapped))]
        indices = writer.joined(rows, len(shape), len(mapped))
        return SplitWindows(writer, self._split_numbers(cut.dim, dim, position, len(shape)), indices, self.updates)

    def _split_numbers(self, operand_dim: int, update_dim: int, position: int, vector_dim: int) -> DimensionNumbers:
        """Return the dimension numbers with a window dimension as one of the indices.

        Args:
            operand_dim: The dimension of the operand.
            update_dim: That of the updates.
            position: The new dimension of the indices.
            vector_dim: The dimension of the index vectors now, behind all others.
        """
        old = self.numbers
        vector = old.number("index_vector_dim")
        before = [number if number < vector else number - 1 for number in old.dims("scatter_indices_batching_dims")]
        lists: Mapping[str, Sequence[int]] = {
            "update_window_dims": [dim for dim in old.dims("update_window_dims") if dim != update_dim],
            "inserted_window_dims": sorted((*old.dims("inserted_window_dims"), operand_dim)),
            "input_batching_dims": old.dims("input_batching_dims"),
            "scatter_indices_batching_dims": [number + (number >= position) for number in before],
            "scatter_dims_to_operand_dims": old.dims("scatter_dims_to_operand_dims"),
        }
        texts = [f"{name} = {list(dims)}" for name, dims in lists.items() if dims]
        return parse_dimension_numbers(f"#stablehlo.scatter<{', '.join([*texts, f'index_vector_dim = {vector_dim}'])}>")


def window_dims(op: Op, numbers: DimensionNumbers) -> dict[int, int]:
    """Return the dimensions of the updates of a scatter that run over windows, by the dimension of the operand."""
    others = (*numbers.dims("inserted_window_dims"), *numbers.dims("input_batching_dims"))
    window = [dim for dim in range(len(op.operands[0].shape)) if dim not in others]
    return dict(zip(window, numbers.dims("update_window_dims"), strict=True))
