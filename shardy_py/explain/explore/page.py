"""The page as a value: data in, one HTML file out; and the steps of making it."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic
from shardy_py.values import frozen

StepCallback = Callable[[str], None]
"""Receiver of what is done next."""


def tell_nothing(step: str) -> None:
    """Show nothing."""


_SCRIPTS = (
    "format",
    "replay",
    "model",
    "tints",
    "state",
    "boxes",
    "layout",
    "edges",
    "graph",
    "graph_input",
    "tree",
    "details",
    "why",
    "propagation",
    "ticks",
    "zoom",
    "memory_chart",
    "time_chart",
    "perfetto",
    "orders_chart",
    "main",
)
"""The scripts, each after those that it needs."""
_PLACEHOLDER = re.compile(r"\{\{(title|style|script|data)\}\}")
_SURROGATE = re.compile("[\ud800-\udfff]")


@frozen(eq=False)
class Page:
    """A page that shows a program in a browser, without a network.

    In a notebook it shows itself.

    Args:
        data: What it shows, as `shardy_py.explain.explore.collect.collect` returns it.
        warnings: What is worth knowing of the program.
    """

    data: Mapping[str, Any] = field(repr=False)
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def html(self) -> str:
        """The page as one HTML file; equal data give the same file."""
        text = json.dumps(self.data, separators=(",", ":"), ensure_ascii=False)
        packed = b64encode(gzip.compress(_valid(text).encode(), mtime=0)).decode()
        parts = {
            "title": self._title,
            "style": _asset("style.css"),
            # What ends a script must not stand inside of one.
            "script": "\n".join(_asset(f"{name}.js") for name in _SCRIPTS).replace("</", "<\\/"),
            "data": packed,
        }
        # In one pass: a part may hold what looks like the place of another one.
        return _PLACEHOLDER.sub(lambda match: parts[match[1]], _asset("page.html"))

    @property
    def _title(self) -> str:
        return escape(_valid(self.data["title"]))

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="{self._title}" srcdoc="{escape(self.html)}" '
            'style="width: 100%; height: 720px; border: 1px solid #888"></iframe>'
        )


def _valid(text: str) -> str:
    """Return a text with a sign in the place of each character that is none, as in a file name that is no UTF-8."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


@cache
def _asset(name: str) -> str:
    return files("shardy_py.explain.explore").joinpath("assets", name).read_text(encoding="utf-8")
