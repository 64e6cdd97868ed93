"""Random programs through the reference and through shardy_py; every difference is reported with its seed.

    python -m shardy_py.oracle.fuzz --seeds 0:200 --pipeline sdy-basic-propagate
    python -m shardy_py.oracle.fuzz --features dot,elementwise --shrink --out differences

Programs that the reference refuses or crashes on are counted apart: there shardy_py must give a result or a clear
error. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from shardy_py.errors import OptionError, ShardyError
from shardy_py.oracle.compare import compare
from shardy_py.oracle.generate import generate, parse_features
from shardy_py.oracle.reference import Reference
from shardy_py.oracle.shrink import shrink
from shardy_py.support.files import write_atomically
from shardy_py.support.processes.start import spawned_pool
from shardy_py.values import frozen

DEFAULT_PIPELINES = (
    "sdy-basic-propagate",
    "sdy-aggressive-propagate",
    "sdy-op-priority-propagate",
    "sdy-user-priority-propagate",
    "sdy-populate-op-sharding-rules",
)
"""Default pipelines."""

Run = Callable[[str, str], str]
Kind = Literal["equal", "different", "refused", "exception", "reference-refused"]
_FAILURES = ("different", "refused", "exception")


@frozen
class FuzzVerdict:
    """Outcome of one program.

    Args:
        seed: The seed of the program, -1 where it has none.
        pipeline: The passes that were run.
        kind: ``equal``; ``different``; ``refused`` (a `ShardyError` although the reference has a result);
            ``exception`` (any other error, whatever the reference does); ``reference-refused``.
        subject: The op or part that differs first, the type of the exception, or the answer of the reference.
        report: Everything about it, readable.
        where: Of an exception, the innermost function.
    """

    seed: int
    pipeline: str
    kind: Kind
    subject: str = ""
    report: str = ""
    where: str = ""

    @property
    def failed(self) -> bool:
        """True if this is a fault of shardy_py."""
        return self.kind in _FAILURES


def judge(text: str, pipeline: str, *, reference: Reference, run: Run, seed: int = -1) -> FuzzVerdict:
    """Run one program on both sides and compare.

    Args:
        text: The module.
        pipeline: Comma-separated passes.
        reference: The reference to compare with.
        run: The function under test; text and pipeline in, text out.
        seed: Only for the verdict.
    """
    expected = reference.run(text, pipeline)
    try:
        actual = run(text, pipeline)
    except ShardyError as error:
        if not expected.ok:
            return FuzzVerdict(seed, pipeline, "reference-refused", expected.kind, expected.text)
        return FuzzVerdict(seed, pipeline, "refused", type(error).__name__, str(error), _innermost(error))
    except Exception as error:  # anything else is a fault, and the next program must still be tried
        report = "".join(traceback.format_exception(error)[-3:])
        return FuzzVerdict(seed, pipeline, "exception", type(error).__name__, report, _innermost(error))
    if not expected.ok:
        return FuzzVerdict(seed, pipeline, "reference-refused", expected.kind, expected.text)
    comparison = compare(expected.text, actual)
    if comparison.equal:
        return FuzzVerdict(seed, pipeline, "equal")
    first = comparison.differences[0]
    return FuzzVerdict(seed, pipeline, "different", first.op_name or first.what, str(comparison))


def _innermost(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno} {frames[-1].name}" if frames else ""


def ours(text: str, pipeline: str) -> str:
    """Run passes of shardy_py."""
    from shardy_py.oracle import conformance

    return conformance.run(text, pipeline)


def check_seeds(
    seeds: Sequence[int], pipelines: Sequence[str], *, features: frozenset[str], size: int
) -> list[FuzzVerdict]:
    """Judge the programs of some seeds under each of some pipelines."""
    verdicts = []
    with Reference() as reference:
        for seed in seeds:
            text = generate(seed, size=size, features=features)
            verdicts += [judge(text, item, reference=reference, run=ours, seed=seed) for item in pipelines]
    return verdicts


def check_in_parallel(
    seeds: Sequence[int], pipelines: Sequence[str], *, features: frozenset[str], size: int, jobs: int
) -> Iterator[FuzzVerdict]:
    """Judge the programs of some seeds in several processes; the verdicts come in order."""
    chunks = [seeds[start : start + 25] for start in range(0, len(seeds), 25)]
    work = partial(check_seeds, pipelines=pipelines, features=features, size=size)
    if jobs <= 1:
        for chunk in chunks:
            yield from work(chunk)
        return
    with spawned_pool(jobs) as pool:
        for verdicts in pool.map(work, chunks):
            yield from verdicts


def minimise(verdict: FuzzVerdict, *, features: frozenset[str], size: int, reference: Reference) -> str:
    """Return a small program that fails in the same way."""
    text = generate(verdict.seed, size=size, features=features)

    def same(smaller: str) -> bool:
        smaller_verdict = judge(smaller, verdict.pipeline, reference=reference, run=ours)
        return smaller_verdict.kind == verdict.kind and smaller_verdict.where == verdict.where

    return shrink(text, same)


def summary(verdicts: Iterable[FuzzVerdict]) -> str:
    """Return how often each kind of verdict was given, and for failures on what."""
    verdicts = list(verdicts)
    lines = [f"{len(verdicts)} runs: {_counts(Counter(item.kind for item in verdicts))}"]
    for pipeline in dict.fromkeys(item.pipeline for item in verdicts):
        kinds = Counter(item.kind for item in verdicts if item.pipeline == pipeline)
        lines.append(f"  {pipeline}: {_counts(kinds)}")
    for kind in (*_FAILURES, "reference-refused"):
        group = [item for item in verdicts if item.kind == kind]
        if group:
            seeds = list(dict.fromkeys(item.seed for item in group))
            subjects = Counter(f"{item.subject} {item.where}".strip() for item in group)
            lines.append(f"{kind}: seeds {', '.join(map(str, seeds[:20]))}{' ...' if len(seeds) > 20 else ''}")
            lines += [f"  {count:5} {subject}" for subject, count in subjects.most_common(12)]
    return "\n".join(lines)


def _counts(counter: Counter[Kind]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counter.items()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m shardy_py.oracle.fuzz", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", default="0:100", help="a number, or from:to")
    parser.add_argument("--pipeline", action="append", help="passes to run; may be given several times")
    parser.add_argument("--features", default="default", help="names, all, default; -name takes one away")
    parser.add_argument("--size", type=int, default=25, help="about how many ops a program has")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--show", type=int, default=3, help="differences to print in full")
    parser.add_argument("--shrink", action="store_true", help="reduce what is shown or written")
    parser.add_argument("--out", type=Path, help="a folder for the failing programs")
    return parser


def _seeds(text: str) -> range:
    first, _, last = text.partition(":")
    return range(int(first), int(last)) if last else range(int(first), int(first) + 1)


def _show(verdict: FuzzVerdict, options: argparse.Namespace, features: frozenset[str]) -> None:
    print(f"\nseed {verdict.seed}, {verdict.pipeline}: {verdict.kind} {verdict.where}\n{verdict.report}")
    text = generate(verdict.seed, size=options.size, features=features)
    if options.shrink:
        with Reference() as reference:
            text = minimise(verdict, features=features, size=options.size, reference=reference)
        print(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / f"seed-{verdict.seed}-{verdict.pipeline.split('{')[0].replace(',', '+')}.mlir"
        write_atomically(path, text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        features = parse_features(options.features)
        seeds = _seeds(options.seeds)
    except (OptionError, ValueError) as error:
        parser.error(str(error))
    pipelines = options.pipeline or list(DEFAULT_PIPELINES)
    verdicts = []
    shown: Counter[tuple[str, str]] = Counter()
    for verdict in check_in_parallel(seeds, pipelines, features=features, size=options.size, jobs=options.jobs):
        verdicts.append(verdict)
        group = (verdict.kind, verdict.where or verdict.subject)
        if verdict.failed and shown[group] == 0 and len(shown) < options.show:
            shown[group] += 1
            _show(verdict, options, features)
    print(summary(verdicts))
    return int(any(verdict.failed for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
