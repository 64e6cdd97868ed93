"""The page of stages as one HTML file, which needs no network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from attrs import field

from shardy_py.ir.graph.program import Op
from shardy_py.kernels.draw.accesses import warp_accesses
from shardy_py.kernels.draw.index_maps import can_be_drawn, draw_map_svg
from shardy_py.kernels.draw.pictures import draw_svg
from shardy_py.kernels.kernel import Kernel
from shardy_py.kernels.page.linked_text import LinkedText, linked_texts
from shardy_py.kernels.reasons import explain
from shardy_py.values import frozen


@frozen
class StagesPage:
    """A page that shows a kernel in a browser, without a network.

    Args:
        html: The page as one HTML file.
    """

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" style="width: 100%; height: 720px; border: 1px solid #888"></iframe>'
        )


def stages_page(kernel: Kernel) -> StagesPage:
    """Return the page of a kernel: its ops, its module at every stage, PTX and machine code, and its index maps.

    Args:
        kernel: The kernel.

    Raises:
        UnsupportedError: as for `Kernel.llvm`.
        OptionError: the libraries of the extra ``codegen`` are missing.
    """
    title = f"{kernel.name}: {kernel.choice.name} kernel for {kernel.device.name}"
    parts = {"title": escape(title), "style": _asset("stages.css"), "script": _asset("stages.js")}
    # What ends a script must not stand inside of one.
    parts["data"] = json.dumps(page_data(kernel), separators=(",", ":")).replace("<", "\\u003c")
    parts["pictures"] = "\n".join(_pictures(kernel))
    page = _asset("stages.html")
    before, *pieces = page.split("{{")
    return StagesPage(before + "".join(parts[name] + rest for name, rest in (piece.split("}}", 1) for piece in pieces)))


def page_data(kernel: Kernel) -> dict[str, Any]:
    """Return the ops and the texts of a page; each line is a text and the number of its op.

    Args:
        kernel: The kernel.

    Raises:
        UnsupportedError: as for `Kernel.llvm`.
    """
    stages, machines = linked_texts(kernel)
    return {
        "ops": [_op_text(op) for op in kernel.fusion.ops],
        "stages": [_text_data(stage) for stage in stages],
        "machines": [_text_data(text) for text in machines],
    }


def _op_text(op: Op) -> str:
    types = ", ".join(str(result.type) for result in op.results)
    return f"{op.name} : {types}" + (f"  {op.location}" if op.location else "")


def _text_data(text: LinkedText) -> dict[str, Any]:
    lines = [[line.text, line.op] for line in text.lines]
    return {"title": text.title, "lines": lines, "missing": text.missing}


def _pictures(kernel: Kernel) -> Sequence[str]:
    """Return what is drawn below the texts: why this kernel, its maps, and the accesses of a warp."""
    shown = [f"<h2>Why this kernel</h2><pre>{escape(chr(10).join(explain(kernel)))}</pre>"]
    threads = kernel.launch.threads
    shown.append("<h2>Index maps: the threads of block 0 at their elements</h2>")
    for map_ in kernel.maps:
        shown.append(f"<pre>{escape(str(map_))}</pre>")
        if can_be_drawn(map_):
            shown.append(f'<div class="picture">{draw_map_svg(map_, threads)}</div>')
    shown.append("<h2>Memory: the accesses of warp 0 of block 0</h2>")
    shown.append(f'<div class="picture">{draw_svg(warp_accesses(kernel))}</div>')
    return shown


@cache
def _asset(name: str) -> str:
    return files("shardy_py.kernels.page").joinpath("assets", name).read_text(encoding="utf-8")
