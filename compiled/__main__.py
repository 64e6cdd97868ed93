"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from compiled.build import LEVEL, build, copy_checkout

CHECKOUT = Path(__file__).parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a compiled copy of the checkout, or bring it up to date."""
    parser = argparse.ArgumentParser(
        prog="python -m compiled", description="Make a copy of this checkout in which the hot modules are compiled."
    )
    parser.add_argument(
        "target", type=Path, metavar="TARGET", help="the folder of the copy, for example build/compiled"
    )
    parser.add_argument(
        "--optimize",
        type=int,
        choices=range(4),
        default=LEVEL,
        help="how much the C compiler optimizes (default: %(default)s; 0 takes a fifth of the time, enough for tests)",
    )
    options = parser.parse_args(arguments)
    target = options.target.resolve()
    if CHECKOUT.is_relative_to(target):
        parser.error("the checkout itself stays as it is: Python would take compiled modules before changed sources")
    copy_checkout(CHECKOUT, target)
    print(f"{len(build(target, level=options.optimize))} compiled modules in {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
