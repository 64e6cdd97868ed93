"""Hooks of the site: what the pages have for readers of the repository, in the form that the site can show.

The pages are plain Markdown. The tests run their fenced blocks and read the options after the language
(``python file=toy.py``); links may lead to files of the repository that are no pages.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import normpath
from typing import Any

_FENCE = re.compile(r"^```(?P<language>\w+)(?P<options>(?: \w+=\S+)*)\n(?P<first>[^\n]*)", re.MULTILINE)
_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>(?:\.\./)+[^)\s]+)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Turn names of files into titles of blocks, and links out of the documentation into their text."""
    folder = Path(page.file.src_uri).parent.as_posix()

    def inside(match: re.Match[str]) -> str:
        leaves = normpath(f"{folder}/{match['target']}").startswith("..")
        return match["text"] if leaves else match[0]

    return _LINK.sub(inside, _FENCE.sub(_site_fence, markdown))


def _site_fence(match: re.Match[str]) -> str:
    """Return the start of a block with a title for its file, and with a lexer that knows prompts."""
    language = "pycon" if match["language"] == "python" and match["first"].startswith(">>>") else match["language"]
    options = dict(option.split("=", 1) for option in match["options"].split())
    title = f' title="{options["file"]}"' if "file" in options else ""
    return f"```{language}{title}\n{match['first']}"
