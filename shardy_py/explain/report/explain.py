"""Explanations on a terminal and as data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from attrs import asdict

from shardy_py.errors import Diagnostic
from shardy_py.explain.answer.explanations import OpExplanation, ValueExplanation
from shardy_py.explain.answer.moves import Chain, chain_lines, dim_text, refusal_lines
from shardy_py.explain.answer.unsettled import NotSettled
from shardy_py.explain.reshards.explain_reshard import CommunicationLine, MovedDimension, ReshardExplanation
from shardy_py.explain.reshards.proposals import Trial
from shardy_py.ir.graph.op_names import RESHARD
from shardy_py.report.data import record_json
from shardy_py.report.terminal_text import terminal_lines

Explanation = ValueExplanation | OpExplanation | ReshardExplanation | CommunicationLine | NotSettled


def explanation_data(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as plain data with stable keys: the fields of the classes."""
    return asdict(explanation)


def explanation_json(explanation: Explanation, *, warnings: Iterable[Diagnostic] = ()) -> str:
    """Return `explanation_data` as JSON text, with the warnings of the run."""
    return record_json(explanation_data(explanation), warnings=warnings)


def explanations_json(explanations: Iterable[Explanation]) -> str:
    """Return several explanations as JSON text."""
    return json.dumps([explanation_data(one) for one in explanations], indent=2, ensure_ascii=False)


def format_reshard(explanation: ReshardExplanation) -> str:
    """Return the explanation of a communication as lines; the trials aside."""
    return "\n".join(_reshard_lines(explanation))


def _reshard_lines(explanation: ReshardExplanation) -> Iterator[str]:
    one = explanation.communication
    yield str(one)
    for moved in explanation.differences:
        yield from _moved_lines(one.value, moved)
    words = [word for word in explanation.combiners if word != "add"]
    by = f" by {', '.join(words)}" if words else ""
    for chain in explanation.reduced:
        yield f"  {chain.axis} shards what is reduced{by}: {chain_start(chain)}, from {chain.origin.annotation}"
        yield from (f"    {line}" for line in chain_lines(chain))
    if not explanation.differences and not explanation.reduced:
        moves = one.kind != RESHARD or one.before != one.after
        yield f"  no dimension moves{': this is about unreduced axes' if moves else ', nothing has to be sent'}"


def chain_start(chain: Chain) -> str:
    """Return the dimension that a chain is about."""
    first = chain.moves[0] if chain.moves else chain.origin
    return dim_text(first.value, first.dimension)


def _moved_lines(value: str, moved: MovedDimension) -> Iterator[str]:
    yield f"dimension {moved.dimension} of {value}"
    for chain in moved.gone:
        yield f"  loses {chain.axis}, which it has from {chain.origin.annotation}"
        yield from (f"    {line}" for line in chain_lines(chain))
    if moved.stopped:
        yield "  which did not go on:"
        yield from (f"    {line}" for line in refusal_lines(moved.stopped))
    if moved.come:
        yield f"  gets {', '.join(moved.come)}"
    for chain in moved.wanted:
        yield f"  {chain.axis} is on {chain_start(chain)}, from {chain.origin.annotation}"
        yield from (f"    {line}" for line in chain_lines(chain))
    for chain in moved.rivals:
        yield f"  the op has {chain.axis} along another factor: {chain_start(chain)}, from {chain.origin.annotation}"
        yield from (f"    {line}" for line in chain_lines(chain))
    if moved.reasons:
        yield "  it has not got it before:"
        yield from (f"    {line}" for line in refusal_lines(moved.reasons))


def print_reshard(explanation: ReshardExplanation, *, file: IO[str] | None = None) -> None:
    """Print the explanation of a communication, and a table of trials that would remove it."""
    from shardy_py.report.terminal import open_console, print_table

    console = open_console(file)
    print(terminal_lines(format_reshard(explanation), console.file), file=console.file)
    headings = ("annotation", "removes it", "communication", "tensors changed")
    if explanation.trials:
        rows = map(_cells, explanation.trials)
        print_table(console, "What another annotation would change", headings, [rows], words=headings)


def _cells(trial: Trial) -> tuple[str, str, str, str]:
    if trial.error:
        return trial.text, "fails", trial.error, ""
    counts = f"{trial.total_before} -> {trial.total_after}{_kinds(trial.before, trial.after)}"
    return trial.text, "yes" if trial.removes else "no", counts, str(trial.values_changed)


def _kinds(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Return the changes by kind, where there are several kinds."""
    kinds = [kind for kind in sorted({*before, *after}) if before.get(kind, 0) != after.get(kind, 0)]
    if len({*before, *after}) < 2 or not kinds:
        return ""
    changes = [f"{kind.removeprefix('sdy.')} {before.get(kind, 0)} -> {after.get(kind, 0)}" for kind in kinds]
    return f" ({', '.join(changes)})"
