"""Text in, text out: each RUN line of the ``.mlir`` and ``.xdsl`` files beside this one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

pytest.importorskip("jaxlib", reason="lit files are MLIR")
pytest.importorskip("filecheck", reason="lit files check their output")
pytest.importorskip("click", reason="RUN lines are commands")

from attrs import fields

from shardy_py.ir.interfaces.passes import NO_TEXT
from shardy_py.oracle.reference import Reference
from shardy_py.transforms.pass_names import bundled_passes, get_pass
from tests.lit.reference_lines import run_reference
from tests.lit.run_lines import LIT, RunLine, find_mismatch, read_run_lines, reference_difference, run_here

HAS_XDSL = find_spec("xdsl") is not None
FILES = sorted((*LIT.rglob("*.mlir"), *(LIT.rglob("*.xdsl") if HAS_XDSL else ())))
LINES = [line for path in FILES for line in read_run_lines(path)]
FOR_REFERENCE = [
    line
    for line in LINES
    if line.command == "shardy-opt" and not {"--mlir-print-op-generic", "--untrusted"} & {*line.arguments}
    if line.fails or (line.checks is not None and not line.has_messages)
]
NOT_IN_JAXLIB = re.compile(r"does not refer to a registered pass|Dialect `\w+' not found")


@pytest.mark.parametrize("line", LINES, ids=str)
def test_output_matches_the_check_lines(line: RunLine) -> None:
    """Every RUN line ends with the exit code that it says, and prints what its CHECK lines say."""
    code, output = run_here(line)
    assert (code != 0) == line.fails, output
    if line.checks is not None:
        assert find_mismatch(line, output) == ""


def test_every_pass_has_a_run_line() -> None:
    """The name of every pass and pipeline that comes with the package is a flag of some RUN line."""
    words = {word for line in LINES for word in re.split(r"[^a-z0-9-]+", " ".join(line.arguments))}
    flags = {word.lstrip("-") for word in words}
    assert sorted(set(bundled_passes()) - flags) == []


def test_every_option_has_a_run_line() -> None:
    """Some RUN line sets each option of each pass, but for those that say where snapshots go."""
    unset = [
        f"{name} {option}"
        for name in sorted(set(bundled_passes()) - {"sdy-save-module"})
        for option in _options_of(name)
        if not any(re.search(rf"{name}(?:=|{{)[^,]*\b{option}=", text) for line in LINES for text in line.arguments)
    ]
    assert unset == []


def _options_of(name: str) -> list[str]:
    """Return the names of the options of a pass that have a text, without those for snapshots."""
    options = [field.name.replace("_", "-") for field in fields(get_pass(name)) if field.metadata != NO_TEXT]
    return [option for option in options if not option.endswith(("dump-directory", "dump-index"))]


def test_check_lines_have_a_run_line() -> None:
    """No CHECK line is left out because its prefix is misspelt or its RUN line is gone."""
    pattern = re.compile(r"^\s*// ([A-Z][A-Z0-9_-]*?)(?:-(?:LABEL|NEXT|SAME|NOT|DAG|EMPTY|COUNT-\d+))?:", re.MULTILINE)
    unused = {}
    for path in sorted({line.path for line in LINES}):
        prefixes = {prefix for line in LINES if line.path == path for prefix in line.check_prefixes}
        names = {match[1] for match in pattern.finditer(path.read_text())}
        if others := names - prefixes - {"RUN", "REFERENCE"}:
            unused[str(path.relative_to(LIT))] = sorted(others)
        elif missing := prefixes - names:
            unused[str(path.relative_to(LIT))] = sorted(missing)
    assert unused == {}


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    """The C++ passes, in a process that all lines share."""
    with Reference() as reference:
        yield reference


@pytest.mark.conformance
@pytest.mark.parametrize("line", FOR_REFERENCE, ids=str)
def test_the_reference_matches_the_check_lines(line: RunLine, reference: Reference) -> None:
    """The C++ passes refuse what is refused here and print what the CHECK lines say, or the file tells why not."""
    is_refused, output = run_reference(line, reference)
    mismatch = ""
    if is_refused != line.fails:
        mismatch = output
    elif not line.fails:
        mismatch = find_mismatch(line, output)
    if reason := reference_difference(line):
        assert mismatch or NOT_IN_JAXLIB.search(output), f"the reference agrees, although: {reason}"
    else:
        assert mismatch == ""
