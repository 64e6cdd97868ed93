"""Print XLA's figures of programs, compiled for host devices, as lines of JSON.

Started by test_costs_against_xla.py in a process of its own, since XLA ends the process for some programs. It reads
requests, a program and the name of an order each, as lines of JSON.
"""

from __future__ import annotations

import json
import sys

import attrs

import shardy_py
from shardy_py.errors import ShardyError
from shardy_py.jax.figures import measure
from shardy_py.jax.host import use_devices

DEVICES = 16


def main() -> None:
    """Answer one request after the other."""
    use_devices(DEVICES)
    for line in sys.stdin:
        text, schedule = json.loads(line)
        try:
            compiled = shardy_py.propagate(text, schedule=schedule).to_jax(partitioner="xla", warnings=[])
            figures = attrs.asdict(measure(compiled))
        except ShardyError:
            figures = None
        print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
