"""MLIR's own dialect ``shard`` (``mesh`` before 2025), read as Shardy's dialect.

A grid is a mesh whose axes are called ``axis0`` on, a sharding is an attribute, and a tensor that is sharded is a
sharding constraint. It has no counterpart of halos, of parts of unequal sizes, and of grids of unknown size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.frontends.mlir.newer_text import Edit, edited, without_strings
from shardy_py.support.late_patterns import late_pattern

_GRIDS = (b"shard.grid", b"mesh.mesh")
_GRID = late_pattern(r"\b(?:shard\.grid|mesh\.mesh)\s+(?P<name>@[\w$.-]+)\s*\(\s*shape\s*=\s*(?P<shape>[\dx?]+)\s*\)")
_SHARDING = late_pattern(
    r"(?P<value>%[\w$.-]+)\s*=\s*(?:shard|mesh)\.sharding\s+(?P<grid>@[\w$.-]+)\s+"
    r"split_axes\s*=\s*(?P<axes>\[(?:\s*\[[\d,\s]*\]\s*,?)*\s*\])(?P<rest>[^:\n]*):\s*!(?:shard|mesh)\.sharding"
)
_SHARD = late_pattern(
    r"\b(?:shard|mesh)\.shard\s+(?P<source>%[\w$.#-]+)\s+to\s+(?P<sharding>%[\w$.-]+)(?:\s+annotate_for_users)?"
    r"(?P<attributes>\s*(?:\{[^{}]*\})?\s*):\s*(?P<type>tensor<(?P<shape>[\dx?]*)[^\n]*)"
)
_ATTRIBUTES = r"\s*<?\{(?P<attributes>[^{}]*)\}>?\s*:\s*"
_GENERIC_GRID = late_pattern(rf'"(?:shard\.grid|mesh\.mesh)"\(\){_ATTRIBUTES}\(\)\s*->\s*\(\)')
_GENERIC_SHARDING = late_pattern(rf'"(?:shard|mesh)\.sharding"\(\){_ATTRIBUTES}\(\)\s*->\s*!(?:shard|mesh)\.sharding')
_GENERIC_SHARD = late_pattern(
    r'"(?:shard|mesh)\.shard"\((?P<source>%[\w$.#-]+),\s*(?P<sharding>%[\w$.-]+)\)\s*(?:<?\{[^{}]*\}>?)?\s*:'
    r"\s*\([^()]*\)\s*->\s*"
)


def has_shard_ops(data: bytes) -> bool:
    """Return whether a text may have ops of the dialect: shardings are over a grid."""
    return any(name in data for name in _GRIDS)


def from_shard(text: str, name: str = "-") -> str:
    """Return a text with Shardy's ops in the places of those of the dialect ``shard``.

    >>> print(from_shard('''shard.grid @g(shape = 2x4)
    ... %s = shard.sharding @g split_axes = [[0], [1]] : !shard.sharding
    ... %1 = shard.shard %0 to %s : tensor<8x16xf32>'''))
    sdy.mesh @g = <["axis0"=2, "axis1"=4]>
    <BLANKLINE>
    %1 = sdy.sharding_constraint %0 <@g, [{"axis0"}, {"axis1"}]> : tensor<8x16xf32>

    Args:
        text: The text of a module.
        name: What locations call it.

    Raises:
        ParseError: a sharding has no counterpart.
    """
    text = _GENERIC_GRID.sub(_custom_grid, text)
    text = _GENERIC_SHARDING.sub(_custom_sharding, text)
    text = _GENERIC_SHARD.sub(r"shard.shard \g<source> to \g<sharding> : ", text)
    plain = without_strings(text)
    return edited(text, [*_grid_edits(plain, name), *_sharding_edits(plain, name)])


def _custom_grid(match: re.Match[str]) -> str:
    """Return a grid in generic form in its own one."""
    name = re.search(r'sym_name\s*=\s*"([\w$.-]+)"', match["attributes"])
    shape = re.search(r"shape\s*=\s*array<i64:\s*([\d,\s]+)>", match["attributes"])
    if name is None or shape is None:
        return match[0]
    return f"shard.grid @{name[1]}(shape = {'x'.join(size.strip() for size in shape[1].split(','))})"


def _custom_sharding(match: re.Match[str]) -> str:
    """Return a sharding in generic form in its own one."""
    grid = re.search(r"grid\s*=\s*(@[\w$.-]+)", match["attributes"])
    axes = re.search(r"split_axes\s*=\s*#(?:shard|mesh)(?:\.axisarray<|<axisarray)(\[.*?\])>", match["attributes"])
    more = re.findall(r"static_(halo_sizes|sharded_dims_offsets)\s*=\s*array<i64:", match["attributes"])
    if grid is None or axes is None:
        return match[0]
    rest = "".join(f" {name} = []" for name in more)
    return f"shard.sharding {grid[1]} split_axes = {axes[1]}{rest} : !shard.sharding"


def _grid_edits(plain: str, name: str) -> Iterator[Edit]:
    for match in _GRID.finditer(plain):
        sizes = match["shape"].split("x")
        if "?" in sizes:
            raise _refusal("a grid has an unknown size", match.start(), plain, name)
        axes = ", ".join(f'"axis{number}"={size}' for number, size in enumerate(sizes))
        yield match.start(), match.end(), f"sdy.mesh {match['name']} = <[{axes}]>"


def _sharding_edits(plain: str, name: str) -> Iterator[Edit]:
    """Take out shardings, and write them where tensors are sharded by them; names are those of the last definition."""
    shardings: dict[str, tuple[str, list[str]]] = {}
    for match in sorted([*_SHARDING.finditer(plain), *_SHARD.finditer(plain)], key=re.Match.start):
        if match.re.pattern == _SHARDING.pattern:
            if match["rest"].strip():
                part = match["rest"].split("=")[0].strip()
                raise _refusal(f"a sharding has {part}, which Shardy does not know", match.start(), plain, name)
            groups = re.findall(r"\[([\d,\s]*)\]", match["axes"][1:-1])
            dims = [", ".join(f'"axis{axis.strip()}"' for axis in group.split(",") if axis.strip()) for group in groups]
            shardings[match["value"]] = match["grid"], dims
            yield match.start(), match.end(), ""
            continue
        if match["sharding"] not in shardings:
            raise _refusal(f"{match['sharding']} is not a sharding of this block", match.start(), plain, name)
        grid, dims = shardings[match["sharding"]]
        rank = match["shape"].count("x")
        if any(dims[rank:]):
            message = f"{match['sharding']} shards more dimensions than the {rank} of the tensor"
            raise _refusal(message, match.start(), plain, name)
        text = ", ".join(f"{{{axes}}}" for axes in (dims + [""] * rank)[:rank])
        source, attributes = match["source"], match["attributes"].strip()
        end = match.start("type")
        middle = f" {attributes}" if attributes else ""
        yield match.start(), end, f"sdy.sharding_constraint {source} <{grid}, [{text}]>{middle} : "


def _refusal(message: str, at: int, plain: str, name: str) -> ParseError:
    line, column = plain.count("\n", 0, at) + 1, at - plain.rfind("\n", 0, at)
    hint = "write this sharding in Shardy's dialect, or leave it out"
    return ParseError(Diagnostic("unsupported-sharding", message, f"{name}:{line}:{column}", hint=hint))
