"""RUN lines through the C++ passes of jaxlib."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs

from shardy_py.ir.interfaces.passes import Pass
from shardy_py.oracle.reference import Reference
from shardy_py.transforms.pass_names import parse_pass, parse_pipeline
from tests.lit.run_lines import RunLine

_FLAG = re.compile(r"--?([a-z0-9-]+)(?:=(.*))?$", re.DOTALL)
_SWITCHES = ("split-input-file", "allow-unregistered-dialect", "verify-diagnostics")
_PATTERNS = {
    "sdy-canonicalize-collectives": "canonicalize{top-down=false enable-patterns=sdy-collective}",
    "sdy-canonicalize-reshards": "canonicalize{top-down=false enable-patterns=sdy-reshard}",
}
"""Passes that jaxlib registers under another name only."""
_NOT_IN_JAXLIB = ("reshard-block-arguments", "sdy-save-module")
"""Passes of pipelines that change no program of these files."""
_OUR_OPTIONS = ("dump_index", "keep_main")
"""Options of passes of pipelines that make no difference without a directory, or where the main function is public."""


def run_reference(line: RunLine, reference: Reference) -> tuple[bool, str]:
    """Return whether a part of the file was refused, and what the passes make of its parts, or their messages."""
    parts = re.split(r"^// -----.*$", line.path.read_text(), flags=re.MULTILINE)
    outcomes = [reference.run(part, pipeline_of(line)) for part in parts]
    return not all(outcome.ok for outcome in outcomes), "\n// -----\n".join(outcome.text for outcome in outcomes)


def pipeline_of(line: RunLine) -> str:
    """Return the passes of a RUN line, separated by commas; those of a pipeline with options, which jaxlib lacks."""
    passes: list[str] = []
    for argument in line.arguments:
        match = _FLAG.match(argument)
        if argument == str(line.path) or match is None or match[1] in _SWITCHES:
            continue
        name, options = match[1], match[2] or ""
        if name == "pass-pipeline":
            passes += _texts(parse_pipeline(options)) if "-pipeline{" in options else [options]
        elif name.endswith("-pipeline") and options:
            passes += _texts(parse_pass(name, options))
        else:
            text = f"{name}{{{options}}}" if options else name
            passes.append(_PATTERNS.get(name, text))
    return ",".join(passes)


def _texts(passes: tuple[Pass, ...]) -> Iterator[str]:
    """Yield the texts of passes, as jaxlib knows them."""
    for item in passes:
        if item.name in _NOT_IN_JAXLIB:
            continue
        class_: Any = type(item)
        options = {field.name: getattr(item, field.name) for field in attrs.fields(class_)}
        defaults = {field.name: field.default for field in attrs.fields(class_)}
        names = [name for name, value in options.items() if value != defaults[name] and name not in _OUR_OPTIONS]
        text = " ".join(f"{name.replace('_', '-')}={str(options[name]).lower()}" for name in names)
        yield _PATTERNS.get(item.name, f"{item.name}{{{text}}}" if text else item.name)
