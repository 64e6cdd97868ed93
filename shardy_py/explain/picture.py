"""Pictures of a sharding: which device holds which part of a tensor, as a table of text or of HTML.

Columns are the parts of the last dimension of the tensor, rows those of the other sharded ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby, product
from typing import TYPE_CHECKING, Any, TypeVar

from shardy_py.api.main_function import argument_names, result_name, result_names
from shardy_py.api.summary import sharding_of
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.shardings import mesh_of
from shardy_py.ir.graph.types import TensorType
from shardy_py.report.axis_colors import axis_hues, tint
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_positions import devices_of, shard_positions
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.arguments import shown
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.api.result import CoreResult

_Item = TypeVar("_Item")
_MOST_ROWS, _MOST_COLUMNS = 16, 8


@frozen
class ShardingPicture:
    """The parts of a tensor and the devices that hold them; ``str`` of it is a table, notebooks show it in colors.

    Attributes:
        title: The name, type and sharding of the tensor.
        shape: Its sizes; None where unknown.
        dims: The sharded dimensions.
        counts: The number of parts of each of them.
        devices: The numbers of the devices that hold a part, by the numbers of the part along the sharded dimensions.
        notes: What the table does not show.
        hues: The hue of the first axis of each sharded dimension, as pages have it.
    """

    title: str
    shape: tuple[int | None, ...]
    dims: tuple[int, ...]
    counts: tuple[int, ...]
    devices: Mapping[tuple[int, ...], tuple[int, ...]]
    notes: tuple[str, ...] = ()
    hues: tuple[int, ...] = ()

    def __str__(self) -> str:
        table = self._table()
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        rule = "+".join(["", *["-" * (width + 2) for width in widths[1:]], ""])
        lines = [self.title, *self.notes]
        for number, (label, *cells) in enumerate(table):
            edge = " " if number == 0 else "|"
            parts = [cell.center(width + 2) for cell, width in zip(cells, widths[1:], strict=True)]
            lines.append(f"{label.rjust(widths[0])} {edge}{edge.join(parts)}{edge}".rstrip())
            lines.append(" " * (widths[0] + 1) + rule)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        (head, *rows) = self._table()
        body = []
        for row, (label, *cells) in enumerate(rows):
            drawn = []
            for column, cell in enumerate(cells):
                color = self._color(row / len(rows), column / len(cells))
                style = f"background:{color};color:#000;text-align:center;padding:.6em 1em"
                drawn.append(f'<td style="{style}">{escape(cell)}</td>')
            body.append(f"<tr><th>{escape(label)}</th>{''.join(drawn)}</tr>")
        titles = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        caption = "<br>".join(map(escape, (self.title, *self.notes)))
        return f"<table><caption>{caption}</caption><tr>{titles}</tr>{''.join(body)}</table>"

    def _color(self, down: float, across: float) -> str:
        """Return the background of a cell: the colours of its axes, darker for later parts.

        Args:
            down: The position of its row, from 0 to 1.
            across: That of its column.
        """
        hues_down, hues_across = (self.hues[:-1], self.hues[-1:]) if self._has_columns else (self.hues, ())
        # Rows of parts along several dimensions have the hue of the first one.
        positions = [*((hue, down) for hue in hues_down[:1]), *((hue, across) for hue in hues_across)]
        colors = [tint(hue, 88 - 24 * position) for hue, position in positions] or [tint(None)]
        return colors[0] if len(colors) == 1 else f"linear-gradient(90deg, {colors[0]} 50%, {colors[1]} 50%)"

    def _table(self) -> list[list[str]]:
        """Return the rows of texts; the first one has the names of the columns, the first of each that of the row."""
        across = len(self.dims) - self._has_columns
        rows = _shortened(list(product(*map(range, self.counts[:across]))), _MOST_ROWS)
        columns = _shortened(list(product(*map(range, self.counts[across:]))), _MOST_COLUMNS)
        table = [["", *["..." if part is None else self._label(part, across) for part in columns]]]
        for row in rows:
            if row is None:
                table.append(["..."] * len(table[0]))
                continue
            cells = ["..." if part is None else self._cell((*row, *part)) for part in columns]
            table.append([self._label(row, 0), *cells])
        return table

    @property
    def _has_columns(self) -> bool:
        """True if the last dimension of the tensor is sharded."""
        return bool(self.dims) and self.dims[-1] == len(self.shape) - 1

    def _label(self, part: tuple[int, ...], first: int) -> str:
        return ", ".join(self._range(first + at, number) for at, number in enumerate(part)) or "all"

    def _range(self, at: int, part: int) -> str:
        """Return the coordinates that a part has along a sharded dimension."""
        size = self.shape[self.dims[at]]
        if size is None:
            return f"part {part}"
        step = -(-size // self.counts[at])
        low, high = min(part * step, size), min((part + 1) * step, size)
        return f"{low}:{high}" if low < high else "padding"

    def _cell(self, part: tuple[int, ...]) -> str:
        """Return the devices that hold a part, as ranges."""
        runs = []
        for _, run in groupby(enumerate(self.devices.get(part, ())), key=lambda item: item[1] - item[0]):
            numbers = [number for _, number in run]
            runs.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}")
        return " ".join(runs)


def picture_of(name: str, shape: Sequence[int | None], sharding: TensorSharding | None, mesh: Mesh) -> ShardingPicture:
    """Return the picture of a tensor.

    Args:
        name: What the picture is of, such as its name and type.
        shape: The sizes of the tensor; None where one is unknown.
        sharding: Its sharding; None for a tensor that every device holds.
        mesh: The mesh of the sharding.
    """
    parts = {} if sharding is None else {number: dim.axes for number, dim in enumerate(sharding.dim_shardings)}
    dims = tuple(number for number, axes in parts.items() if axes)
    places = [shard_positions(mesh, parts[number]) for number in dims]
    holders: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for device in sorted(devices_of(mesh)):
        holders[tuple(place[device] for place in places)].append(device)
    counts = tuple(sharding.of_dimension(number).sharded_size(mesh) for number in dims) if sharding else ()
    title = f"{name}: {'on every device' if sharding is None else sharding}"
    above = [str(number) for number in dims if number < len(shape) - 1]
    notes = [f"rows: dimension{'s' * (len(above) > 1)} {', '.join(above)}"] if above else []
    if len(above) < len(dims):
        notes.append(f"columns: dimension {dims[-1]}")
    if sharding is not None and sharding.unreduced_axes:
        axes = ", ".join(map(str, sharding.unreduced_axes))
        notes.append(f"unreduced along {axes}: the devices of a part hold values that add up")
    devices = {part: tuple(held) for part, held in holders.items()}
    hue_of = axis_hues(axis.name for axis in mesh.axes)
    hues = tuple(hue_of[parts[number][0].name] for number in dims)
    return ShardingPicture(title, tuple(shape), dims, counts, devices, ("; ".join(notes),) if notes else (), hues)


def draw_sharding(result: CoreResult, value: Any) -> ShardingPicture:
    """Return the picture of a tensor of a propagated program; see `Result.picture`."""
    program = result.program
    names = [*result_names(result.main), *map(result_name, range(len(result.main.function_results)))]
    is_result = isinstance(value, str) and value in names
    tensor = (
        result.main.function_results[names.index(value) % len(result.results)] if is_result else result.value(value)
    )
    sharding = sharding_of(program, tensor, result.registry)
    if not isinstance(tensor.type, TensorType):
        raise OptionError(
            Diagnostic("no-tensor", f"{shown(value)} is of the type {tensor.type}: only tensors have parts")
        )
    meshes = set(program.meshes.values())
    if sharding is not None:
        mesh = mesh_of(sharding, program.meshes)
    elif len(meshes) == 1:
        mesh = meshes.pop()
    else:
        message = f"{shown(value)} has no sharding, and the program has {len(meshes)} meshes"
        raise OptionError(
            Diagnostic("no-sharding", message, hint="only with one mesh is it clear which devices have it")
        )
    name = argument_names(result.main)[value] if isinstance(value, int) else value
    title = f"{name} {tensor.type}" if isinstance(name, str) else str(tensor.type)
    return picture_of(title, tensor.type.shape, sharding, mesh)


def _shortened(items: Sequence[_Item], most: int) -> list[_Item | None]:
    """Return the items, with None for those in the middle where there are too many."""
    if len(items) <= most:
        return list(items)
    half = most // 2
    return [*items[:half], None, *items[-half:]]
