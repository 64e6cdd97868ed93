"""Rules of a user about single fragments: which are merged, and in which order some run.

The text is upstream's: ``FragmentScheduleRule(ordered_fragments=[FragmentInfo(origins=["f"],mesh_name="m1")->...])``.
Mirrors mpmd/transforms/common/utils.h: FragmentInfo, FragmentMergeRule and FragmentScheduleRule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.attributes import UNIT
from shardy_py.ir.graph.program import Op
from shardy_py.mpmd.dialect.fragments import (
    MESH_NAME,
    SPLIT_WORDS,
    call_counter_of,
    is_user_fragment,
    mesh_of,
    origins_of,
    split_kind,
    stage_of,
    unsigned,
)
from shardy_py.mpmd.dialect.op_names import CALL_COUNTER, DROP_TRANSFERRED, KEEP_TRANSFERRED, ORIGIN, STAGE
from shardy_py.mpmd.dialect.origins import UserOrigin, parse_user_origin
from shardy_py.values import frozen

_INFO = re.compile(r"FragmentInfo\(((?:[^()\"]|\"[^\"]*\"|\(\d+\))*)\)")
_FIELD = re.compile(r"(\w+)=(\[(?:[^\]\"]|\"[^\"]*\")*\]|\"[^\"]*\"|\w+)")
_ORIGIN = re.compile(r'"[^"]*"(?:\(\d+\))?')
_BLANK = re.compile(r"(\"[^\"]*\")|\s+")
_NAME_OR_PARENTHESIS = re.compile(r"\"[^\"]*\"|[()]")
_SPLITS = {word: split for split, word in SPLIT_WORDS.items()}
_MARKS = {"keep": KEEP_TRANSFERRED, "drop": DROP_TRANSFERRED}
_INFO_FIELDS = ("origins", "stage", "call_counter", "split_type", "mesh_name")


@frozen
class FragmentInfo:
    """The facts that tell a fragment from others.

    >>> str(FragmentInfo((UserOrigin("f", 1),), "m1", stage=0))
    'FragmentInfo(origins=["f"(1)],stage=0,mesh_name="m1")'

    Args:
        origins: Its named computations.
        mesh: Its mesh.
        stage: Its stage, or None.
        call_counter: Its microbatch, or None.
        split: The half of a backward fragment that it is, "" for all of it.
    """

    origins: tuple[UserOrigin, ...]
    mesh: str
    stage: int | None = None
    call_counter: int | None = None
    split: str = ""

    def matches(self, op: Op) -> bool:
        """Return whether a fragment is the one; what is missing here must be missing there, too."""
        return is_user_fragment(op) and (
            sorted(map(str, origins_of(op))),
            mesh_of(op),
            stage_of(op),
            call_counter_of(op),
            split_kind(op),
        ) == (sorted(map(str, self.origins)), self.mesh, self.stage, self.call_counter, self.split)

    def label(self, op: Op) -> None:
        """Make a fragment match."""
        attributes = op.attributes
        for name in (STAGE, CALL_COUNTER, KEEP_TRANSFERRED, DROP_TRANSFERRED):
            if name in attributes:
                del attributes[name]
        attributes[ORIGIN] = tuple(item.attribute for item in self.origins)
        attributes[MESH_NAME] = self.mesh
        if self.stage is not None:
            attributes[STAGE] = self.stage
        if self.call_counter is not None:
            attributes[CALL_COUNTER] = unsigned(self.call_counter)
        if self.split:
            attributes[_MARKS[self.split]] = UNIT

    def __str__(self) -> str:
        fields = [
            f"origins=[{','.join(map(str, self.origins))}]",
            "" if self.stage is None else f"stage={self.stage}",
            "" if self.call_counter is None else f"call_counter={self.call_counter}",
            f"split_type={SPLIT_WORDS[self.split]}" if self.split else "",
            f'mesh_name="{self.mesh}"',
        ]
        return f"FragmentInfo({','.join(filter(None, fields))})"


@frozen
class FragmentMergeRule:
    """Fragments that become one.

    Args:
        sources: The fragments.
        target: What the merged one is.
    """

    sources: tuple[FragmentInfo, ...]
    target: FragmentInfo

    def __str__(self) -> str:
        return f"FragmentMergeRule(sources=[{','.join(map(str, self.sources))}],target={self.target})"


@frozen
class FragmentScheduleRule:
    """Fragments of one mesh in the order in which they run.

    Args:
        ordered_fragments: The fragments.
    """

    ordered_fragments: tuple[FragmentInfo, ...]

    def __str__(self) -> str:
        return f"FragmentScheduleRule(ordered_fragments=[{'->'.join(map(str, self.ordered_fragments))}])"


def parse_merge_rules(text: str) -> tuple[FragmentMergeRule, ...]:
    """Return the rules of a text, with commas in between.

    Raises:
        OptionError: the text is not one of such rules.
    """
    rules = []
    for body in _bodies(text, "FragmentMergeRule"):
        sources, equals, target = body.partition("],target=")
        if not sources.startswith("sources=[") or not equals:
            raise _malformed(body, "FragmentMergeRule(sources=[FragmentInfo(...)],target=FragmentInfo(...))")
        infos = _infos(target, ",")
        if len(infos) != 1:
            raise _malformed(body, "one FragmentInfo(...) as the target")
        rules.append(FragmentMergeRule(_infos(sources.removeprefix("sources=["), ","), infos[0]))
    return tuple(rules)


def parse_schedule_rules(text: str) -> tuple[FragmentScheduleRule, ...]:
    """Return the rules of a text, with commas in between.

    Raises:
        OptionError: the text is not one of such rules.
    """
    rules = []
    for body in _bodies(text, "FragmentScheduleRule"):
        if not body.startswith("ordered_fragments=[") or not body.endswith("]"):
            raise _malformed(body, "FragmentScheduleRule(ordered_fragments=[FragmentInfo(...)->FragmentInfo(...)])")
        rules.append(FragmentScheduleRule(_infos(body.removeprefix("ordered_fragments=[")[:-1], "->")))
    return tuple(rules)


def _bodies(text: str, name: str) -> list[str]:
    """Return what stands in the parentheses of each rule, without blanks; those in names stay."""
    rest, result = _BLANK.sub(lambda match: match[1] or "", text), []
    while rest:
        if not rest.startswith(f"{name}("):
            raise _malformed(rest, f"{name}(...)")
        depth = 0
        for match in _NAME_OR_PARENTHESIS.finditer(rest, len(name)):
            depth += {"(": 1, ")": -1}.get(match[0], 0)
            if not depth:
                break
        else:
            raise _malformed(rest, "a closing parenthesis")
        result.append(rest[len(name) + 1 : match.start()])
        rest = rest[match.end() :].removeprefix(",")
    return result


def _infos(text: str, separator: str) -> tuple[FragmentInfo, ...]:
    matches = list(_INFO.finditer(text))
    if not matches or separator.join(match[0] for match in matches) != text:
        raise _malformed(text, f"FragmentInfo(...) with {separator!r} in between")
    return tuple(_info(match[1]) for match in matches)


def _info(text: str) -> FragmentInfo:
    fields: Mapping[str, str] = dict(_FIELD.findall(text))
    unknown = fields.keys() - set(_INFO_FIELDS)
    if unknown or "origins" not in fields or "mesh_name" not in fields:
        raise _malformed(text, f"the fields {', '.join(_INFO_FIELDS)}, of which origins and mesh_name are required")
    split = fields.get("split_type", "")
    if split and split not in _SPLITS:
        raise _malformed(text, f"split_type={' or '.join(_SPLITS)}")
    try:
        numbers = [int(fields[name]) if name in fields else None for name in ("stage", "call_counter")]
    except ValueError:
        raise _malformed(text, "numbers for stage and call_counter") from None
    origins = tuple(map(parse_user_origin, _ORIGIN.findall(fields["origins"])))
    return FragmentInfo(origins, fields["mesh_name"].strip('"'), numbers[0], numbers[1], _SPLITS.get(split, ""))


def _malformed(text: str, expected: str) -> OptionError:
    return OptionError(Diagnostic("malformed-rule", f"{text!r} is not a valid rule", hint=f"expected {expected}"))
