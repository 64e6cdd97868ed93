"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks import table
from benchmarks.measure import measure_all
from benchmarks.programs import PROGRAMS


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _parser().parse_args(arguments)
    chosen = [program for program in PROGRAMS if not options.programs or program.name in options.programs]
    print(table.head(), flush=True)
    unequal = 0
    for item in measure_all(chosen, alternations=options.alternations):
        print(table.row(item), flush=True)
        if not item.equal:
            unequal += 1
            print(item.difference, file=sys.stderr)
    return 1 if unequal else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Time ours and the C++ passes.")
    names = ", ".join(program.name for program in PROGRAMS)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"what to run, by default all: {names}")
    parser.add_argument("--alternations", type=int, default=5, metavar="N", help="runs of each side (default: 5)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
