"""``shardy layout``."""

from __future__ import annotations

import json

import click

from shardy_py.cli.files import echo_report, write_output
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.layout.drawing import draw_svg, draw_text
from shardy_py.layout.index import linear_index
from shardy_py.layout.instruction import HloInstruction, is_instruction, parse_instruction
from shardy_py.layout.parse import parse_shape
from shardy_py.layout.policies import apply_policy, find_policy
from shardy_py.layout.report import format_rows, instruction_rows, shape_data, shape_rows
from shardy_py.layout.shape import AnyShape, Shape
from shardy_py.layout.sizes import padded_bytes, shard_shape
from shardy_py.report.terminal_text import text_width


def run_layout(
    *,
    shape: str,
    index: str | None,
    only_bytes: bool,
    shard: str | None,
    policy: str | None,
    draw: bool,
    svg: str | None,
    as_json: bool,
) -> None:
    """Print the requested property of a shape: by default its anatomy."""
    asked = [
        name
        for name, is_given in (
            ("--index", index is not None),
            ("--bytes", only_bytes),
            ("--json", as_json),
            ("--draw", draw),
        )
        if is_given
    ]
    if len(asked) > 1:
        raise OptionError(Diagnostic("option-conflict", f"{' and '.join(asked)} exclude each other"))
    instruction = parse_instruction(shape) if is_instruction(shape) else None
    prepared = _prepared(instruction.shape if instruction else parse_shape(shape), shard=shard, policy=policy)
    if svg is not None:
        write_output(svg, draw_svg(_array(prepared, "--svg")))
    if index is not None:
        click.echo(linear_index(_array(prepared, "--index"), _numbers("--index", index, ",")))
    elif only_bytes:
        click.echo(padded_bytes(prepared))
    elif as_json:
        click.echo(json.dumps(shape_data(prepared), indent=2))
    elif draw:
        click.echo(draw_text(_array(prepared, "--draw"), width=text_width()))
    elif policy is not None:
        click.echo(prepared)
    elif svg is None:
        echo_report(_anatomy(prepared, instruction))


def _anatomy(shape: AnyShape, instruction: HloInstruction | None) -> str:
    return format_rows([*(instruction_rows(instruction) if instruction else ()), *shape_rows(shape)])


def _prepared(shape: AnyShape, *, shard: str | None, policy: str | None) -> AnyShape:
    """Return the local shape where one is asked for, then the layout a policy chooses for it."""
    if shard is not None:
        shape = shard_shape(_array(shape, "--shard"), _numbers("--shard", shard, "x"))
    return shape if policy is None else apply_policy(find_policy(policy), shape)


def _array(shape: AnyShape, option: str) -> Shape:
    if isinstance(shape, Shape):
        return shape
    raise OptionError(Diagnostic("no-array", f"{option} needs an array, {shape} is none"))


def _numbers(option: str, text: str, separator: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(separator)] if text.strip() else []
    if not all(part.removeprefix("-").isdecimal() and part.isascii() for part in parts):
        example = separator.join(("2", "3"))
        raise OptionError(Diagnostic("invalid-number", f"{option} {text}: not numbers like {example}"))
    return tuple(map(int, parts))
