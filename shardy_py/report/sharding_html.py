"""Tables of shardings for notebooks: each dimension with its axes, in the colours of the axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from shardy_py.report.axis_colors import axis_hues, tint
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

_MOST_ROWS = 40


@frozen
class ShardedTensor:
    """A row of a table.

    Args:
        name: The name of a tensor.
        sharding: Its sharding; None where every device has all of it.
        type: Its type, or "".
        shape: Its sizes, as far as they are known.
    """

    name: str
    sharding: TensorSharding | None
    type: str = ""
    shape: Sequence[int | None] = ()


def sharding_table(caption: str, axes: Iterable[tuple[str, int]], tensors: Sequence[ShardedTensor]) -> str:
    """Return a table of tensors as HTML.

    Args:
        caption: What the table shows, as text of several lines.
        axes: The axes of the mesh with their sizes.
        tensors: The rows.
    """
    sizes = dict(axes)
    hues = axis_hues(sizes)
    legend = " ".join(_chip(f"{name} {size}", hues[name]) for name, size in sizes.items())
    head = "<br>".join(escape(line) for line in caption.splitlines())
    rows = [_row(tensor, hues) for tensor in tensors[:_MOST_ROWS]]
    if len(tensors) > _MOST_ROWS:
        rows.append(f'<tr><td colspan="3">and {len(tensors) - _MOST_ROWS} more</td></tr>')
    return f'<table><caption style="text-align:left">{head}<br>{legend}</caption>{"".join(rows)}</table>'


def _row(tensor: ShardedTensor, hues: dict[str, int]) -> str:
    cells = (escape(tensor.name), escape(tensor.type), " ".join(_dims(tensor, hues)) or "on every device")
    return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"


def _dims(tensor: ShardedTensor, hues: dict[str, int]) -> Iterable[str]:
    """Yield each dimension with its size, and a chip for each of its axes."""
    if tensor.sharding is None:
        return
    for number, dim in enumerate(tensor.sharding.dim_shardings):
        size = tensor.shape[number] if number < len(tensor.shape) else None
        yield f"<span>{'·' if size is None else size}</span>"
        yield from (_chip(_text(axis), hues.get(axis.name)) for axis in dim.axes)


def _text(axis: AxisRef) -> str:
    return str(axis).replace('"', "")


def _chip(text: str, hue: int | None) -> str:
    return f'<span style="background:{tint(hue)};color:#000;border-radius:3px;padding:0 .4em">{escape(text)}</span>'
