"""The gallery of examples: every script runs, prints what it promises, and writes the pictures of its README."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.integration.gallery import EXAMPLES, FOLDERS, PICTURES, run_python

pytest.importorskip("jaxlib", reason="the examples propagate MLIR modules")

MAX_LINES = 80
MAX_PICTURE_BYTES = 60_000
SCRIPTS = {
    "compiler_pipeline/jax_step.py": (("jax",), r"step 4: loss 0\.3\d+\n[^$]*collectives: \{'all_reduce': \d+\}"),
    "compiler_pipeline/mlir_in_and_out.py": ((), r"local\.mlir +\d+ +\d+ +0 +34\n[^$]*\(512, 256\)"),
    "compiler_pipeline/several_processes.py": (
        ("jax",),
        r"process 1: device \d+ has rows 2 to 4, as computed by numpy",
    ),
    "dialect_author/three_ops.py": (("numpy",), r"wrong: factor j=6[^$]*tiny\.cumsum.*\[\{\"data\"\}, \{\}\]"),
    "dialect_author/propagate_toy.py": (("xdsl",), r"toy\.top_k +<@mesh, \[\{\"data\"\}, \{\}\]>[^$]*annotated"),
    "kernels/gelu.py": (("llvmlite", "xdsl"), r"39\.scf-to-cf[^$]*numpy: below 1e-6\n\tld\.global"),
    "kernels/row_sums_warp.py": (("llvmlite", "xdsl"), r"8 sectors each\n[^$]*threads 0-7: 0 \+ 4 a thread"),
    "kernels/stages_pages.py": (("llvmlite", "xdsl"), r"rows\.html: a reduction kernel, 41 stages\ncolumns\.html: "),
    "researcher/compare_orders.py": (("jax", "matplotlib", "rich"), r"flat sends 112\.4 MiB[^$]*tensors differ in the"),
    "researcher/search_order.py": (("jax", "matplotlib", "optuna", "rich"), r"flat +112\.40[^$]*\[\[level\]\]"),
}
"""The libraries that each script needs besides jaxlib, and a pattern of what it prints."""
SLOW = ("several_processes", "compare_orders", "search_order")
NOTEBOOKS = sorted(EXAMPLES.rglob("*.ipynb"))


def _script(name: str) -> Any:
    return pytest.param(name, id=name, marks=[pytest.mark.slow] if Path(name).stem in SLOW else [])


def _is_a_script(path: Path) -> bool:
    return "python examples/" in path.read_text(encoding="utf-8") or "torchrun" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [_script(name) for name in SCRIPTS])
def test_script_prints_what_it_shows(name: str, tmp_path: Path) -> None:
    """Each script runs in a folder of its own, and the pictures drawn without matplotlib are those of the README."""
    libraries, pattern = SCRIPTS[name]
    for library in libraries:
        pytest.importorskip(library)
    takes_folder = "[FOLDER" in (EXAMPLES / name).read_text(encoding="utf-8")
    printed = run_python([EXAMPLES / name, *([tmp_path] if takes_folder else [])], tmp_path)
    assert re.search(pattern, printed), printed
    pictures = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.svg")}
    assert bool(pictures) == takes_folder
    for picture, text in pictures.items():
        assert ET.fromstring(text).tag.endswith("svg")
        if "matplotlib" not in libraries:
            assert text == (PICTURES / picture).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_prints_what_it_has(notebook: Path, tmp_path: Path) -> None:
    """The code cells of a notebook run in order, and each prints what is stored with it."""
    pytest.importorskip("jax")
    pytest.importorskip("rich")
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    end = "end of the cell"
    sources = ["".join(cell["source"]) for cell in cells]
    script = tmp_path / "cells.py"
    code = [
        f"import sys; sys.path.insert(0, {str(notebook.parent)!r})",
        *(f"{item}\nprint({end!r})" for item in sources),
    ]
    script.write_text("\n".join(code), encoding="utf-8")
    printed = run_python([script], tmp_path).split(f"{end}\n")
    stored = ["".join("".join(output["text"]) for output in cell["outputs"]) for cell in cells]
    assert printed == [*stored, ""]


def test_every_script_is_listed_and_short() -> None:
    """The README has each script and notebook, and a table here says what it prints; all have at most 80 lines."""
    paths = [path for folder in FOLDERS for path in (EXAMPLES / folder).glob("*.py")]
    assert [path.name for path in paths if len(path.read_text(encoding="utf-8").splitlines()) > MAX_LINES] == []
    scripts = {path.relative_to(EXAMPLES).as_posix() for path in paths if _is_a_script(path)}
    assert {name for name in scripts if not name.startswith("pytorch/")} == set(SCRIPTS)
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    notebooks = {path.relative_to(EXAMPLES).as_posix() for path in NOTEBOOKS}
    assert [name for name in sorted(scripts | notebooks) if f"]({name})" not in readme] == []


def test_links_and_pictures_of_the_readme_exist() -> None:
    """Each link of the README leads to a file, and each picture is small and shown there."""
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?://)([^)#]+)", readme)
    assert [link for link in links if not (EXAMPLES / link).exists()] == []
    assert {link for link in links if link.startswith("pictures/")} == {
        f"pictures/{p.name}" for p in PICTURES.iterdir()
    }
    assert [path.name for path in PICTURES.iterdir() if path.stat().st_size > MAX_PICTURE_BYTES] == []
