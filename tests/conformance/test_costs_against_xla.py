"""Estimates of costs beside XLA's own figures, over programs of the data beside the project."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from math import prod
from pathlib import Path

import pytest
from attrs import evolve, frozen

pytest.importorskip("jax", reason="compiling needs the extra 'jax'")

from shardy_py.cost.against_xla import XlaComparison
from shardy_py.cost.machines.machine import Link, Machine
from shardy_py.cost.machines.toml import get_machine
from shardy_py.cost.session import Session
from shardy_py.jax.figures.values import XlaCollective, XlaFigures
from tests.conformance.conformance_data import DATA, need

need("programs")

SCRIPT = Path(__file__).with_name("xla_figures.py")
SMALL = DATA.parent / "reference" / "xla_costs.json"
PROGRAMS = (
    *("calls_same_sharding", "while_carried_many", "prio_mlp_0", "shardmap_ring_attention", "moe_dense"),
    *("expert_parallel_all_to_all", "gpt_scan_unroll_fwd", "beam_search_while", "dlrm_train", "gpt_scan_train"),
)
BOUNDS = {
    "flops": (0.95, 1.05),
    "memory_traffic_bytes": (0.8, 1.25),
    "communication_bytes": (0.8, 1.25),
    "peak_bytes": (0.8, 1.25),
}
"""The ratios of estimate and XLA's number that count as agreement."""
RANKS = {"rank by bytes": 0.95, "rank by time": 0.95}
"""The least shares of programs whose two orders rank alike, of those whose bytes differ by more than 5 %."""
SHARES = {"flops": 0.9, "memory_traffic_bytes": 0.8, "communication_bytes": 0.9, "peak_bytes": 0.9, **RANKS}
"""The least shares of programs that agree."""


@frozen
class Case:
    """A program under an order.

    Args:
        name: The name of the program.
        text: The program.
        schedule: The name of the order, or None for the default one.
    """

    name: str
    text: str
    schedule: str | None = None


def cases() -> Iterator[Case]:
    """Yield the larger programs under two orders each, then the small ones."""
    for name in PROGRAMS:
        path = Path(DATA, "programs", f"{name}.mlir.gz")
        text = gzip.decompress(path.read_bytes()).decode()
        yield from (Case(name, text, schedule) for schedule in (None, "flat"))
    if SMALL.exists():
        for item in json.loads(SMALL.read_text()):
            yield Case(item["name"], item["stablehlo"])


class Xla:
    """A process that compiles programs; a new one where XLA ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def figures(self, case: Case) -> XlaFigures | None:
        """Return XLA's figures of a case; None where it cannot compile it."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps((case.text, case.schedule)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self.close()
            return None
        actual = json.loads(answer)
        if actual is None:
            return None
        collectives = tuple(XlaCollective(**item) for item in actual.pop("collectives"))
        return XlaFigures(collectives=collectives, **actual)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@pytest.fixture
def xla() -> Iterator[Xla]:
    """XLA in a process of its own."""
    actual = Xla()
    yield actual
    actual.close()


def compare(case: Case, xla: Xla) -> XlaComparison | None:
    """Return the estimate of a case beside XLA's figures; None where XLA cannot compile it."""
    figures = xla.figures(case)
    if figures is None:
        return None
    session = Session.open(case.text)
    meshes = session.program.meshes.values()
    machine = _machine(max((prod(axis.size for axis in mesh.axes) for mesh in meshes), default=1))
    cost = session.evaluate(case.schedule, machine, profile="xla-cpu", partitioner="xla").cost
    return XlaComparison(cost, figures)


def _machine(devices: int) -> Machine:
    """Return a machine of so many devices of one host."""
    actual = get_machine("cpu-8")
    return evolve(actual, links=(evolve(actual.links[0], size=devices),))


def seconds(figures: XlaFigures, machine: Machine) -> float:
    """Return the time that XLA's figures take on a machine of one link, by the formulas of the estimate."""
    peak, _ = machine.peak("f32")
    operations = figures.flops + figures.transcendentals
    transfers = [item for item in figures.collectives if item.group > 1]
    moved = figures.bytes_accessed - sum(item.runs * _accessed(item) for item in transfers)
    computing = max(operations / peak, moved / machine.memory_bandwidth)
    return computing + sum(item.runs * _seconds(item, machine.links[0]) for item in transfers)


def _accessed(item: XlaCollective) -> float:
    """Return the bytes that one device reads and writes for a collective, which takes no time besides sending."""
    others = item.group - 1
    factor_by_kind = {"all_gather": item.group + 1, "reduce_scatter": item.group + 1, "all_reduce": item.group}
    if item.kind in factor_by_kind:
        return factor_by_kind[item.kind] * item.bytes / others
    return 2 * item.bytes * (1 if item.kind == "collective_permute" else item.group / others)


def _seconds(item: XlaCollective, link: Link) -> float:
    others = item.group - 1
    steps = {"all_reduce": 2 * others, "collective_permute": 1}.get(item.kind, others)
    return item.bytes / link.bandwidth + steps * link.latency


def agrees(name: str, ratio: float | None) -> bool:
    """Return whether a ratio is within the bounds of its number."""
    least, most = BOUNDS[name]
    return ratio is not None and least <= ratio <= most


@pytest.mark.conformance
def test_estimates_agree_with_xla_for_most_programs(xla: Xla) -> None:
    """A table of ratios is printed; the shares of programs that agree, of those that XLA compiles, are large enough."""
    collected: dict[str, list[bool]] = {name: [] for name in SHARES}
    orders: dict[str, list[XlaComparison]] = {}
    for case in cases():
        compared = compare(case, xla)
        if compared is None:
            continue
        orders.setdefault(case.name, []).append(compared)
        ratios = {item.name: item.ratio for item in compared.numbers if item.name in BOUNDS}
        cells = [f"{name} {'  -  ' if ratio is None else format(ratio, '5.2f')}" for name, ratio in ratios.items()]
        print(f"{case.name:32} {case.schedule or 'default':8} " + "  ".join(cells))
        for name, ratio in ratios.items():
            collected[name].append(agrees(name, ratio))
    for left, right in (pair for pair in orders.values() if len(pair) == 2):
        if _differ(left.figures.communication_bytes, right.figures.communication_bytes):
            for name, is_alike in _ranks(left, right).items():
                collected[name].append(is_alike)
    shares = {name: sum(values) / len(values) for name, values in collected.items() if values}
    print({name: f"{share:.0%} of {len(collected[name])}" for name, share in shares.items()})
    assert all(share >= SHARES[name] for name, share in shares.items()), shares


def _differ(left: float, right: float) -> bool:
    return abs(left - right) > 0.05 * max(left, right)


def _ranks(left: XlaComparison, right: XlaComparison) -> dict[str, bool]:
    """Return whether two orders rank alike by bytes, and by the time that XLA's figures take."""
    bytes_, times = [], []
    for item in (left, right):
        bytes_.append((item.cost.communication_bytes.value or 0, item.figures.communication_bytes))
        times.append((item.cost.seconds.value or 0, seconds(item.figures, _machine(item.cost.devices))))
    return {"rank by bytes": _is_alike(*bytes_), "rank by time": _is_alike(*times)}


def _is_alike(left: tuple[float, float], other: tuple[float, float]) -> bool:
    return (left[0] > other[0]) == (left[1] > other[1])
