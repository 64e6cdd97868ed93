"""The command line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve

from benchmarks import table
from benchmarks.choose import ALL, choose_programs
from benchmarks.data import report
from benchmarks.fixed_costs import measure_fixed_costs
from benchmarks.measure import Measurement, Settings, Skipped, measure
from benchmarks.processes import JOBS, SWEPT, measure_large, measure_sweep
from benchmarks.programs import PROGRAMS
from benchmarks.runs import TINY, run_ours
from benchmarks.starts import measure_starts
from benchmarks.targets import MILLION, SWEPT_SCHEDULES, Measured, format_targets, targets
from shardy_py.frontends.mlir import parse_module


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the requested outputs; return 1 where results are not those of the C++ passes."""
    parser = _parser()
    options = parser.parse_args(arguments)
    settings = Settings(min_ops=options.min_ops, memory=options.memory, again=options.again, passes=options.passes)
    if options.alternations is not None:
        settings = evolve(settings, alternations=options.alternations, seconds=0.0)
    try:
        chosen = list(choose_programs(options.programs))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if options.sweep and all(program.name != SWEPT for program in chosen):
        parser.error(f"--sweep compares schedules of {SWEPT}, which is not among the programs: name its file or folder")
    run_ours(parse_module(TINY))
    print(table.head(), flush=True)
    items: list[Measurement | Skipped] = []
    for program in chosen:
        items.append(measure(program, settings))
        print(table.row(items[-1]), flush=True)
    measured = [item for item in items if isinstance(item, Measurement)]
    if options.passes:
        print("\n" + "\n".join(map(table.passes, measured)))
    everything = Measured(
        measured,
        measure_starts(runs=settings.alternations) if options.starts else None,
        measure_fixed_costs() if options.fixed_costs else None,
        measure_sweep(chosen, options.sweep) if options.sweep else None,
        measure_large(options.large) if options.large else None,
    )
    print(f"\n{table.LEGEND}\n\n{format_targets(targets(everything))}")
    if options.json:
        data = report(items, everything, settings=settings, date=options.date)
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        from benchmarks.plot import draw

        draw(measured, options.plot)
    unequal = [item for item in measured if not item.equal]
    for item in unequal:
        print(f"\n{item.name}: {item.difference}", file=sys.stderr)
    return 1 if unequal else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time ours and the C++ passes of jaxlib, alternately in one process, on the same modules.",
    )
    made = ", ".join(program.name for program in PROGRAMS)
    parser.add_argument(
        "programs",
        nargs="*",
        metavar="PROGRAM",
        help=f"a file, a folder, one of {made}, or {ALL} for these, the default",
    )
    parser.add_argument(
        "--alternations",
        type=_positive,
        metavar="N",
        help="runs of each side (default: 5, and more of programs that take little time)",
    )
    parser.add_argument("--min-ops", type=int, default=0, metavar="N", help="leave out files with fewer ops")
    parser.add_argument(
        "--sweep",
        type=_positive,
        metavar="N",
        help=f"compare so many schedules of {SWEPT}, a file, in {JOBS} processes; the target is of {SWEPT_SCHEDULES}",
    )
    parser.add_argument(
        "--large",
        type=_positive,
        metavar="OPS",
        help=f"a training step of a GPT with so many ops, in a process of its own; the target is of {MILLION}",
    )
    parser.add_argument("--passes", action="store_true", help="print what each of our passes took")
    parser.add_argument(
        "--no-memory", dest="memory", action="store_false", help="do not measure memory, nor whether the C++ aborts"
    )
    parser.add_argument("--no-again", dest="again", action="store_false", help="do not measure solving again")
    parser.add_argument("--no-starts", dest="starts", action="store_false", help="do not measure import and help")
    parser.add_argument(
        "--no-fixed-costs", dest="fixed_costs", action="store_false", help="do not measure a program of one op"
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write everything measured")
    parser.add_argument("--plot", type=Path, metavar="OUT", help="draw a picture (needs matplotlib)")
    parser.add_argument("--date", default="", metavar="DATE", help="what the JSON says about when this was")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
