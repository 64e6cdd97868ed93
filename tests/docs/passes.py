"""Writes docs/reference/passes.md from the passes themselves: ``python -m tests.docs``."""

from __future__ import annotations

import inspect
import re
from enum import Enum
from pathlib import Path
from typing import Any

import attrs

from shardy_py.transforms.pass_names import bundled_passes, get_pass
from shardy_py.transforms.pass_options import option_fields
from shardy_py.transforms.run import PassPipeline

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "passes.md"
HEAD = """\
# Passes

Passes whose names begin with `sdy-` are the reference's and have its names and options; it does not know the option
`reshard-ops-without-rule` and, by name, `sdy-save-module`. So are those that begin with `mpmd-`, but for
`mpmd-calls-to-named-ops`, `mpmd-fold-splats`, `mpmd-infer-mesh-cheapest-transfers`, `mpmd-simplify-ops` and the options
`cheapest-transfers` and `reduces-arguments`. `canonicalize`, `cse`, `inline` and
`symbol-dce` are MLIR's, the others our own.
`shardy-opt FILE -NAME='OPTION=VALUE ...'` runs one, and `shardy-opt FILE --pass-pipeline='NAME{OPTION=VALUE},NAME'`
several. In Python `shardy_py.transforms.pass_names.parse_pipeline` reads the same text.

```console
$ shardy-opt examples/gpt_train.mlir -sdy-basic-propagate='keep-sharding-rules=true' -sdy-close-shardings -o out.mlir
```

What runs in which order, and why, is in
[`transforms/import_pipeline.py`](../../shardy_py/transforms/import_pipeline.py) for what is before propagation, in
[`transforms/export_pipeline.py`](../../shardy_py/transforms/export_pipeline.py) for what is after it, and in
[`transforms/pipelines.py`](../../shardy_py/transforms/pipelines.py) for all.
Plugins may add passes: the bundled one for StableHLO has `sdy-explicit-gather-scatter-batching` and
`stablehlo-simplify`.
This page is written by `python -m tests.docs`; a test checks that it
is up to date.
"""
SECTIONS = (
    ("Pipelines", ("import_pipeline:", "pipelines:", "export_pipeline:")),
    ("Before propagation", ("prepare.",)),
    ("Propagation", ("propagate:", "populate_op_sharding_rules:")),
    ("After propagation", ("finish.",)),
    ("Programs over several meshes", ("shardy_py.mpmd.",)),
    ("Others", ("",)),
)


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    left = {name: path.removeprefix("shardy_py.transforms.") for name, path in bundled_passes().items()}
    for title, files in SECTIONS:
        parts.append(f"\n## {title}\n")
        names = [name for name, path in left.items() if path.startswith(files)]
        parts += map(_entry, names)
        left = {name: path for name, path in left.items() if name not in names}
    return "".join(parts)


def _entry(name: str) -> str:
    class_ = get_pass(name)
    summary = _docstring(class_)[0]
    arguments: dict[str, str] = {}
    for base in reversed(class_.__mro__):
        arguments |= _docstring(base)[1]
    lines = [f"\n### {name}\n\n{summary}\n"]
    fields = option_fields(class_)
    if fields:
        lines.append("\n| option | default | meaning |\n|---|---|---|\n")
    for option, field in fields.items():
        lines.append(f"| `{option}` | {_default(field.default)} | {arguments[field.name]} |\n")
    if issubclass(class_, PassPipeline):
        has_snapshots = "dump-directory" in fields
        lines.append(f"\nIt runs{', snapshots where they have a directory' if has_snapshots else ''}:\n\n")
        pipeline = class_(dump_directory="DIRECTORY") if has_snapshots else class_()
        lines += [f"1. `{stage.item.name}`: {stage.reason}\n" for stage in pipeline.stages()]
    return "".join(lines)


def _docstring(class_: type) -> tuple[str, dict[str, str]]:
    """Return all before the arguments of a docstring, and the arguments by name, one line each."""
    before, _, after = inspect.cleandoc(class_.__doc__ or "").partition("\nArgs:\n")
    block = re.split(r"\n(?=\S)", after)[0]
    arguments = {}
    for item in re.split(r"\n(?=    \w+: )", "\n" + block):
        name, colon, meaning = item.strip().partition(": ")
        if colon:
            arguments[name] = " ".join(meaning.replace("``", "`").split())
    return before.strip().replace("``", "`"), arguments


def _default(value: Any) -> str:
    if isinstance(value, attrs.Factory):  # type: ignore[arg-type]
        value = value.factory()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, tuple):
        value = ",".join(map(str, value))
    return f"`{value}`" if value != "" else "none"
