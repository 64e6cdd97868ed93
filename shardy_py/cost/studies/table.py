"""The table of a study: a row per program, mesh, machine and schedule, with ranks that know what a tie is."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from importlib import import_module
from io import BytesIO, StringIO
from itertools import combinations
from math import inf
from typing import Any

from attrs import asdict, evolve, field, fields

from shardy_py.cost.sweeps.comparison import Measure, measure_of
from shardy_py.cost.sweeps.outcomes import Outcome, RefusedSchedule
from shardy_py.errors import Diagnostic, OptionError, as_warnings
from shardy_py.values import frozen

FORMATS = ("csv", "json", "parquet", "tex")
_LATEX = ("program", "mesh", "machine", "schedule", "seconds", "communication_bytes", "peak_bytes", "band")


@frozen
class Provenance:
    """Provenance of a row.

    Args:
        program: The name of the program.
        program_sha256: The digest of its file.
        mesh: Its mesh.
        machine: The name of the machine, or "".
        profile: The name of the profile of its compiler, or "".
        shardy_py: The version of this package.
        jaxlib: The version of jaxlib, or "".
        schedule_sha256: The digest of the schedule as TOML.
        seed: The seed that the schedule was drawn from; None for one that was not drawn.
    """

    program: str
    program_sha256: str
    mesh: str
    machine: str
    profile: str
    shardy_py: str
    jaxlib: str
    schedule_sha256: str = ""
    seed: int | None = None

    def of_schedule(self, schedule: str, seed: int | None) -> Provenance:
        """Return the provenance of the row of a schedule."""
        return evolve(self, schedule_sha256=sha256(schedule.encode()).hexdigest(), seed=seed)

    @property
    def group(self) -> tuple[str, str, str]:
        """Rows whose schedules are ranked together: those of a program, a mesh and a machine."""
        return self.program, self.mesh, self.machine


@frozen
class StudyRow:
    """A row of a study.

    Args:
        provenance: Where it comes from.
        outcome: The outcome of the schedule.
        band: Its band among those of the same program, mesh and machine, from 1 on; 0 for a refused schedule.
        relative: Its measure over that of the first schedule; None for a refused one, and where the first is refused
            or has none.
        xla_bytes: The bytes that one device sends in XLA's program for host devices; None where it was not compiled.
    """

    provenance: Provenance
    outcome: Outcome
    band: int
    relative: float | None
    xla_bytes: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain numbers and texts by column."""
        outcome = self.outcome
        is_refused = isinstance(outcome, RefusedSchedule)
        return {
            **asdict(self.provenance),
            "schedule": outcome.name,
            "band": self.band,
            "relative": self.relative,
            **{name: None if is_refused else getattr(outcome, name) for name in _NUMBERS},
            "xla_bytes": self.xla_bytes,
            "refused": "; ".join(outcome.problems) if isinstance(outcome, RefusedSchedule) else "",
        }


_NUMBERS = (
    "seconds",
    "compute_seconds",
    "communication_seconds",
    "communication_bytes",
    "peak_bytes",
    "flops",
    "balance",
    "num_collectives",
    "values_changed",
)
COLUMNS = (
    *(item.name for item in fields(Provenance)),
    "schedule",
    "band",
    "relative",
    *_NUMBERS,
    "xla_bytes",
    "refused",
)


@frozen
class RankCorrelation:
    """Correlation of the ranks that two columns give to the schedules of a program on a mesh.

    Args:
        program: The name of the program.
        mesh: The mesh.
        first: One ranking: a measure and a machine.
        second: The other one.
        schedules: The number of schedules that both have.
        spearman: The correlation of the ranks; None where one of them does not tell any schedules apart.
    """

    program: str
    mesh: str
    first: str
    second: str
    schedules: int
    spearman: float | None


@frozen
class StudyTable:
    """The table of a study.

    Args:
        rows: The rows, in the order of the study.
        measure: The measure by which schedules are ranked.
        tie: The part by which estimates have to differ to count as different.
        correlations: Rank correlations of time and bytes, and of machines.
        warnings: What is worth knowing of programs and schedules, and the problems of stores.
    """

    rows: tuple[StudyRow, ...]
    measure: Measure
    tie: float
    correlations: tuple[RankCorrelation, ...]
    warnings: tuple[Diagnostic, ...] = field(default=(), converter=as_warnings)

    def write(self, table_format: str) -> bytes:
        """Return the table as the bytes of a file: ``csv``, ``json``, ``tex`` or ``parquet``.

        Raises:
            OptionError: pandas and pyarrow are missing, which write Parquet.
        """
        return {"csv": self._csv, "json": self._json, "tex": self._latex, "parquet": self._parquet}[table_format]()

    def _csv(self) -> bytes:
        text = StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row.to_json() for row in self.rows)
        return text.getvalue().encode()

    def _json(self) -> bytes:
        data = {
            "measure": self.measure,
            "tie": self.tie,
            "rows": [row.to_json() for row in self.rows],
            "correlations": [asdict(item) for item in self.correlations],
        }
        return (json.dumps(data, indent=2) + "\n").encode()

    def _latex(self) -> bytes:
        lines = [rf"\begin{{tabular}}{{llll{'r' * (len(_LATEX) - 4)}}}", r"\toprule"]
        lines += [" & ".join(map(_escaped, _LATEX)) + r" \\", r"\midrule"]
        for row in self.rows:
            data = row.to_json()
            lines.append(" & ".join(_escaped(_short(data[name])) for name in _LATEX) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""]).encode()

    def _parquet(self) -> bytes:
        try:
            pandas = import_module("pandas")
            import_module("pyarrow")  # with which pandas writes Parquet
        except ImportError as error:
            message = f"a Parquet file needs pandas and pyarrow: {error}"
            hint = "pip install pandas pyarrow, or write a .csv"
            raise OptionError(Diagnostic("no-parquet", message, hint=hint)) from None
        buffer = BytesIO()
        pandas.DataFrame([row.to_json() for row in self.rows], columns=list(COLUMNS)).to_parquet(buffer, index=False)
        return buffer.getvalue()


StudyOutcome = tuple[Provenance, Outcome, float | None]
"""The provenance of an outcome, the outcome, and the bytes of XLA's program; None where it was not compiled."""


def make_table(
    outcomes: Iterable[StudyOutcome],
    *,
    measure: Measure,
    tie: float,
    warnings: Iterable[Diagnostic] = (),
) -> StudyTable:
    """Return the table of outcomes.

    Args:
        outcomes: The outcomes, with where they come from and what XLA's program sends; the first of a program, mesh
            and machine is the one that others are compared with.
        measure: The measure by which schedules are ranked.
        tie: The part by which estimates have to differ to count as different.
        warnings: The warnings of the study.
    """
    groups: dict[tuple[str, str, str], list[StudyOutcome]] = defaultdict(list)
    for provenance, outcome, sent in outcomes:
        groups[provenance.group].append((provenance, outcome, sent))
    rows = tuple(row for members in groups.values() for row in _rows(members, measure, tie))
    return StudyTable(rows, measure, tie, tuple(_correlations(rows)), tuple(warnings))


def _rows(members: Sequence[StudyOutcome], measure: Measure, tie: float) -> Iterator[StudyRow]:
    number = measure_of(measure)
    numbers = [None if isinstance(outcome, RefusedSchedule) else number(outcome) for _, outcome, _ in members]
    bands = tie_bands([item for item in numbers if item is not None], tie)
    first = numbers[0]
    for (provenance, outcome, sent), item in zip(members, numbers, strict=True):
        relative = None if item is None or not first else item / first
        yield StudyRow(provenance, outcome, 0 if item is None else bands[item], relative, sent)


def tie_bands(numbers: Iterable[float], tie: float) -> dict[float, int]:
    """Return the band of each number, from 1 on: a band holds what exceeds its smallest by at most a part of it.

    `1.0`, `1.04` and `1.06` with a tie of 0.05 are in the bands 1, 1 and 2.
    """
    bands: dict[float, int] = {}
    band, least = 0, -inf
    for item in sorted(set(numbers)):
        if item > least * (1 + tie):
            band, least = band + 1, item
        bands[item] = band
    return bands


def _correlations(rows: Sequence[StudyRow]) -> Iterator[RankCorrelation]:
    """Yield how time and bytes rank the schedules of a machine, and how machines rank them by time."""
    columns: dict[tuple[str, str], dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if isinstance(row.outcome, RefusedSchedule):
            continue
        program, mesh, machine = row.provenance.group
        columns_here = columns[program, mesh]
        name = row.outcome.name
        columns_here[f"bytes on {machine}" if machine else "bytes"][name] = row.outcome.communication_bytes
        columns_here[f"memory on {machine}" if machine else "memory"][name] = row.outcome.peak_bytes
        if row.outcome.seconds is not None:
            columns_here[f"time on {machine}"][name] = row.outcome.seconds
        if row.xla_bytes is not None:
            columns_here[f"bytes in XLA for {machine}" if machine else "bytes in XLA"][name] = row.xla_bytes
    for (program, mesh), named in columns.items():
        for first, second in combinations(sorted(named), 2):
            common = [name for name in named[first] if name in named[second]]
            pair = ([named[column][name] for name in common] for column in (first, second))
            yield RankCorrelation(program, mesh, first, second, len(common), spearman(*pair))


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the correlation of the ranks of two lists, equal numbers with their mean rank; None where one is flat."""
    ranks = [_ranks(numbers) for numbers in (first, second)]
    means = [sum(column) / max(1, len(column)) for column in ranks]
    away = [[rank - mean for rank in column] for column, mean in zip(ranks, means, strict=True)]
    sizes = [sum(item * item for item in column) for column in away]
    if not all(sizes):
        return None
    product = sum(first_away * second_away for first_away, second_away in zip(*away, strict=True))
    return float(product / (sizes[0] * sizes[1]) ** 0.5)


def _ranks(numbers: Sequence[float]) -> list[float]:
    indices: dict[float, list[int]] = defaultdict(list)
    for index, item in enumerate(sorted(numbers)):
        indices[item].append(index)
    return [sum(indices[item]) / len(indices[item]) for item in numbers]


def _short(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _escaped(text: str) -> str:
    for character in ("\\", "_", "%", "&", "#", "$", "{", "}"):
        text = text.replace(character, r"\textbackslash " if character == "\\" else f"\\{character}")
    return text
