"""Explanations on a terminal and as data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from attrs import asdict

from shardy_py.analysis.explain_reshard import CommunicationLine, Difference, ReshardExplanation
from shardy_py.analysis.proposals import Trial
from shardy_py.explain.answer.explanation import AxisChain, NotSettled, OpExplanation, ValueExplanation
from shardy_py.explain.answer.text import chain_lines, reason_lines, spot

Explanation = ValueExplanation | OpExplanation | ReshardExplanation | CommunicationLine | NotSettled


def explanation_data(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as plain data with stable keys: the fields of the classes."""
    return asdict(explanation)


def explanation_json(explanation: Explanation) -> str:
    """Return `explanation_data` as JSON text."""
    return json.dumps(explanation_data(explanation), indent=2, ensure_ascii=False)


def explanations_json(explanations: Iterable[Explanation]) -> str:
    """Return several explanations as JSON text."""
    return json.dumps([explanation_data(one) for one in explanations], indent=2, ensure_ascii=False)


def format_reshard(explanation: ReshardExplanation) -> str:
    """Return why there is a communication, as lines; the trials aside."""
    return "\n".join(_reshard_lines(explanation))


def _reshard_lines(explanation: ReshardExplanation) -> Iterator[str]:
    one = explanation.communication
    yield str(one)
    for difference in explanation.differences:
        yield from _difference_lines(one.value, difference)
    for chain in explanation.reduced:
        yield f"  {chain.axis} shards what is reduced: {chain_start(chain)}, from {chain.origin.annotation}"
        yield from (f"    {line}" for line in chain_lines(chain))
    if not explanation.differences and not explanation.reduced:
        moves = one.kind != "sdy.reshard" or one.before != one.after
        yield f"  no dimension moves{': this is about unreduced axes' if moves else ', nothing has to be sent'}"


def chain_start(chain: AxisChain) -> str:
    """Return the dimension that a chain is about."""
    first = chain.moves[0] if chain.moves else chain.origin
    return spot(first.value, first.dimension)


def _difference_lines(value: str, difference: Difference) -> Iterator[str]:
    yield f"dimension {difference.dimension} of {value}"
    for chain in difference.gone:
        yield f"  loses {chain.axis}, which it has from {chain.origin.annotation}"
        yield from (f"    {line}" for line in chain_lines(chain))
    if difference.stopped:
        yield "  which did not go on:"
        yield from (f"    {line}" for line in reason_lines(difference.stopped))
    if difference.come:
        yield f"  gets {', '.join(difference.come)}"
    for chain in difference.wanted:
        yield f"  {chain.axis} is on {chain_start(chain)}, from {chain.origin.annotation}"
        yield from (f"    {line}" for line in chain_lines(chain))
    for chain in difference.rivals:
        yield f"  the op has {chain.axis} along another factor: {chain_start(chain)}, from {chain.origin.annotation}"
        yield from (f"    {line}" for line in chain_lines(chain))
    if difference.reasons:
        yield "  it has not got it before:"
        yield from (f"    {line}" for line in reason_lines(difference.reasons))


def print_reshard(explanation: ReshardExplanation, *, file: IO[str] | None = None) -> None:
    """Print why there is a communication, and a table of what would remove it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=file)
    console.print(Text(format_reshard(explanation)), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, title="What another annotation would change", title_justify="left")
    for column in ("annotation", "removes it", "communication", "tensors changed"):
        table.add_column(column, overflow="fold")
    for trial in explanation.trials:
        table.add_row(*map(Text, _cells(trial)))
    if explanation.trials:
        console.print(table)


def _cells(trial: Trial) -> tuple[str, str, str, str]:
    if trial.error:
        return trial.text, "fails", trial.error, ""
    counts = f"{trial.total_before} -> {trial.total_after}{_kinds(trial.before, trial.after)}"
    return trial.text, "yes" if trial.removes else "no", counts, str(trial.values_changed)


def _kinds(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Return by kind what changed, where there are several kinds."""
    kinds = [kind for kind in sorted({*before, *after}) if before.get(kind, 0) != after.get(kind, 0)]
    if len({*before, *after}) < 2 or not kinds:
        return ""
    changes = [f"{kind.removeprefix('sdy.')} {before.get(kind, 0)} -> {after.get(kind, 0)}" for kind in kinds]
    return f" ({', '.join(changes)})"
