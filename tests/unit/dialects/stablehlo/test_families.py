"""Families of ops: each op is in one place, and what few programs need is imported when it is asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import shardy_dialects.stablehlo as stablehlo
from shardy_dialects.stablehlo import FAMILIES, custom_call
from shardy_dialects.stablehlo.definitions import Definitions, Lazy
from shardy_dialects.stablehlo.local.ops import StablehloLocalOps
from shardy_py.plugins import OpDefinition

ROOT = Path(stablehlo.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
SHARED_ROOMS = ("local", "simplify", "sizes")
"""Local programs of all families, simpler forms of their ops and known sizes are written in the ops of several."""


def family_of(path: Path) -> str:
    """Return the family or shared module to which a file belongs."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def definitions_by_family() -> dict[str, list[OpDefinition]]:
    """Return the definitions that each family registers."""
    collected = {}
    for family in FAMILIES:
        definitions = Definitions(StablehloLocalOps())
        family.register(definitions)
        dialects = (definitions.stablehlo, definitions.chlo, definitions.mhlo)
        collected[family.__name__.rpartition(".")[2]] = [item for dialect in dialects for item in dialect.definitions]
    return collected


def texts(path: Path) -> Iterator[str]:
    """Yield the texts in the code of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def lazy_facets() -> Iterator[tuple[str, Lazy[..., object]]]:
    """Yield each facet that is imported when it is asked for, with the name of the op."""
    for definitions in definitions_by_family().values():
        for item in definitions:
            for facet in (item.emission, item.local, item.cost):
                if isinstance(facet, Lazy):
                    yield item.name, facet


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_op_is_named_in_its_family_only(path: Path) -> None:
    """Other families import the constant that a family has for the name of an op; custom calls have targets."""
    file_family = family_of(path)
    if file_family in SHARED_ROOMS:
        return
    owners = {item.name: family for family, items in definitions_by_family().items() for item in items}
    targets = set(custom_call.RULES) if file_family == "custom_call" else set()
    assert [text for text in texts(path) if owners.get(text, file_family) != file_family and text not in targets] == []


def test_two_families_have_no_op_in_common() -> None:
    """Each op is registered once."""
    names = [item.name for items in definitions_by_family().values() for item in items]
    assert len(names) == len(set(names)) > 160


def test_lazy_facets_are_where_their_ops_look_for_them() -> None:
    """Each is a function or a class of a module in the package of the family; costs can be made."""
    checked = 0
    for name, facet in lazy_facets():
        assert callable(facet.load()), name
        if facet.module.endswith(".cost"):
            assert hasattr(facet(), "get_flops"), name
        checked += 1
    assert checked > 100


def test_a_start_imports_no_lazy_facet() -> None:
    """The plugin is there without the modules of local forms, scalar bodies and costs."""
    modules = sorted({facet.module for _, facet in lazy_facets()})
    code = (
        "import sys\n"
        "from shardy_py.plugins import Registry\n"
        "Registry.from_entry_points()\n"
        f"print([name for name in {modules!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert len(modules) > 20


def test_an_elementwise_op_is_named_once() -> None:
    """Its entry in the table has all facets: the cube root is spelled in one file, once."""
    places = [path.name for path in FILES for text in texts(path) if text == "stablehlo.cbrt"]
    assert places == ["ops.py"]
