"""Every name that the documentation uses is in the package, and every public name is documented."""

from __future__ import annotations

import inspect
import re

import pytest

import shardy_py as sdy
from shardy_py import plugins
from shardy_py.api.result import CoreResult
from shardy_py.extensions import result_method_homes
from shardy_py.sharding import rules
from tests.docs.pages import IN_A_COPY, PAGES, ROOT, find_blocks

REFERENCE = "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "reference").glob("*.md")))
_OPS_OF_SHARDY = re.compile(r'"sdy\.|#sdy|= sdy\.|`sdy\.[a-z_]+`')


def _used_names():
    """Yield place and name of each attribute of the package that Python code of the documentation uses."""
    for page in PAGES:
        if IN_A_COPY in page.parents:
            continue  # such a page makes modules
        text = page.read_text(encoding="utf-8")
        code = "\n".join(block.body for block in find_blocks(page) if block.language == "python")
        code += "\n".join(re.findall(r"`(sdy\.(?:rule|rules|[A-Z])[^`]*)`", text))
        # What stands in quotes, or before a symbol, is the name of an op of Shardy's dialect.
        for name in re.findall(
            r"(?<![\w\"'#.])(?:sdy|shardy_py)\.([A-Za-z_]\w*)\b(?! @)", re.sub(r"\"[^\"\n]*\"", "", code)
        ):
            yield str(page.relative_to(ROOT)), name
        for names in re.findall(r"^(?:>>> )?from shardy_py import ([\w, ]+)$", code, re.MULTILINE):
            yield from ((str(page.relative_to(ROOT)), name.strip()) for name in names.split(","))


MODULES = {path.stem for path in (ROOT / "shardy_py").iterdir() if not path.name.startswith("_")}


def test_every_name_that_the_documentation_uses_exists():
    """What a reader copies out of the pages is there."""
    used = set(_used_names())
    assert len({name for _, name in used}) > 30
    unknown = sorted((page, name) for page, name in used if name not in sdy.__all__ and name not in MODULES)
    assert unknown == []


def test_names_for_plugins_are_where_the_page_says():
    """The rows of the last table of the page about plugins are names of the package or of its module for plugins."""
    page = (ROOT / "docs" / "reference" / "plugins.md").read_text(encoding="utf-8")
    table = page[page.index("## Names for types") :]
    cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    names = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert "Combiner" in names
    assert [name for name in sorted(names) if not (hasattr(plugins, name) or name in sdy.__all__)] == []


@pytest.mark.parametrize("name", sdy.__all__)
def test_every_public_name_is_documented(name):
    """A public name has a docstring, or is a value that the reference explains, and it is in the reference."""
    value = getattr(sdy, name)
    assert re.search(rf"\b{name}\b", REFERENCE)
    if inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value):
        assert (value.__doc__ or "").strip()


def test_every_method_of_a_result_has_its_row():
    """The table of `Result` has what the core and all leaves give it; one method serves only the leaves."""
    table = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8").partition("## Result\n")[2]
    rows = re.findall(r"^\| (`.+?) \|", table.partition("\n## ")[0], re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)[`(]", row)}
    names = {name for name in (*vars(CoreResult), *result_method_homes()) if not name.startswith("_")}
    assert sorted(names - named - {"arguments_again"}) == []


@pytest.mark.parametrize("name", rules.__all__)
def test_every_helper_has_its_row(name):
    """The reference has each helper for rules with what it takes."""
    assert f"`rules.{name}(op" in REFERENCE
    assert "Args:" in getattr(rules, name).__doc__
