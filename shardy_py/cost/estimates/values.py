"""Cost of a finished program, as values. Every number says how it was obtained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

import attrs

from shardy_py.cost.estimates.memory_timeline import MemoryTimeline
from shardy_py.support.texts import format_bytes, format_count, format_seconds
from shardy_py.values import frozen

Unit = Literal["B", "s", "FLOP", ""]


@frozen
class Quantity:
    """A number.

    Args:
        value: The number; None where it is not known.
        unit: ``B`` bytes, ``s`` seconds, ``FLOP`` operations, or "" for a ratio.
        how: How it was obtained, in one sentence.
    """

    value: float | None
    unit: Unit
    how: str

    def __str__(self) -> str:
        return "unknown" if self.value is None else f"{self.value:g} {self.unit}".rstrip()


@frozen
class Transfer:
    """One op that moves data between devices, or would.

    Args:
        op_id: Its id in the program.
        kind: Its kind: ``all_gather``, ``all_reduce``, ``reduce_scatter``, ``all_to_all``, ``collective_permute``,
            ``all_slice``, or ``reshard`` where no collectives were found.
        tensor: The type of the tensor that it moves, as the whole program sees it.
        axes: The axes along which the devices of a group differ, or "" where the op names devices itself.
        devices: The number of devices in each group.
        runs: The number of runs; a fraction where a branch may be taken or not.
        bytes: The bytes that one device sends each time.
        seconds: How long it takes each time; None without a machine.
        how: How these were obtained.
        number: The number of the communication that it comes from, which `ReshardExplainer.explain` takes; -1 where
            it is not known (see `name_transfers`).
        value: The name of the tensor that it moves, or "".
        where: The purpose of the communication, or "".
        location: The place in the source of the op that it is for, or "".
        is_hoisted: Whether it is taken to run once before a loop that it stands in, as the backend moves it there.
        combined: The number of all-reduces that the backend makes one of, with this one; 1 for none.
        combined_with: The id of the first of these, or -1 where this is the first, or stands alone.
    """

    op_id: int
    kind: str
    tensor: str
    axes: str
    devices: int
    runs: float
    bytes: int
    seconds: float | None
    how: str
    number: int = -1
    value: str = ""
    where: str = ""
    location: str = ""
    is_hoisted: bool = False
    combined: int = 1
    combined_with: int = -1


@frozen
class OpCost:
    """Cost of the kernels that an op is the last op of.

    Args:
        op_id: Its id in the program.
        name: Its name.
        result: The type of its first result.
        runs: The number of runs of all kernels.
        flops: The operations of one device, with those of the ops that are fused into it.
        transcendentals: The transcendental operations.
        bytes: The bytes that one device reads and writes.
        seconds: How long all runs take, without transfers; None without a machine.
        location: The place in the source.
    """

    op_id: int
    name: str
    result: str
    runs: float
    flops: float
    transcendentals: float
    bytes: float
    seconds: float | None
    location: str = ""


@frozen
class LineCost:
    """Cost of all ops of one line of the source.

    Args:
        location: The place in the source, or "" for ops without one.
        ops: The number of ops.
        flops: The operations of one device.
        bytes: The bytes that it reads and writes.
        sent: The bytes that it sends.
        compute_seconds: The time of computing; None without a machine.
        communication_seconds: The time of communicating; None without a machine.
    """

    location: str
    ops: int
    flops: float
    bytes: float
    sent: float
    compute_seconds: float | None
    communication_seconds: float | None

    @property
    def seconds(self) -> float | None:
        """The time of computing and of communicating."""
        if self.compute_seconds is None or self.communication_seconds is None:
            return None
        return self.compute_seconds + self.communication_seconds


@frozen
class KindCost:
    """Cost of all transfers of one kind.

    Args:
        kind: The kind.
        count: The number in the program.
        runs: The number of runs.
        bytes: The bytes that one device sends in all runs.
        seconds: How long all runs take; None without a machine.
        how: How these were obtained.
    """

    kind: str
    count: int
    runs: float
    bytes: float
    seconds: float | None
    how: str


@frozen
class Cost:
    """Cost of a program on one device of a machine.

    Args:
        machine: The name of the machine; None where there is none, and no times.
        devices: The number of devices of the mesh.
        layout: The name of the layout policy, or None for plain bytes.
        seconds: All the time: that of computing and that of communicating, one after the other.
        compute_seconds: The time of computing.
        communication_seconds: The time of communicating.
        communication_bytes: The bytes that one device sends.
        flops: The operations of one device.
        total_flops: The operations of the whole program on a single device.
        balance: How much of the work of all devices is useful: 1 where it is divided without rest.
        memory_traffic_bytes: The bytes that one device reads from and writes to its memory.
        argument_bytes: The arguments on one device.
        result_bytes: The results on one device.
        peak_bytes: The largest number of bytes that one device holds at a time.
        transcendentals: The transcendental operations of one device, which `flops` leaves out.
        transfers: Every op that moves data, in program order.
        notes: What could not be found out, or was assumed, and what that means for the numbers.
        profile: The name of the profile of the backend, whose rules of collectives were taken to hold.
        ops: The cost of computing by op, in program order.
        peak_op: The id of the op of the main function at which the peak is reached; -1 for none.
        is_counted: Whether the transfers are the collectives of the local program, and not estimated from shardings.
        timeline: The bytes that one device holds at each step of the main function, of which `peak_bytes` is the most.
    """

    machine: str | None
    devices: int
    layout: str | None
    seconds: Quantity
    compute_seconds: Quantity
    communication_seconds: Quantity
    communication_bytes: Quantity
    flops: Quantity
    total_flops: Quantity
    balance: Quantity
    memory_traffic_bytes: Quantity
    argument_bytes: Quantity
    result_bytes: Quantity
    peak_bytes: Quantity
    transcendentals: Quantity = Quantity(0.0, "FLOP", "none")
    transfers: tuple[Transfer, ...] = ()
    notes: tuple[str, ...] = ()
    profile: str = "none"
    ops: tuple[OpCost, ...] = ()
    peak_op: int = -1
    is_counted: bool = False
    timeline: MemoryTimeline = attrs.field(default=MemoryTimeline(), eq=False, repr=False)

    def __str__(self) -> str:
        """Return the main numbers as lines."""
        rows = list(self._rows())
        width = max(len(name) for name, _ in rows)
        return "\n".join([self.title, *(f"  {name:<{width}}  {text}" for name, text in rows)])

    def __repr__(self) -> str:
        seconds = self.seconds.value
        time = "" if seconds is None else f"{format_seconds(seconds)}, "
        sent, peak = _bytes(self.communication_bytes), _bytes(self.peak_bytes)
        return f"<{self._title_start} on one of {self.devices} devices: {time}{sent} sent, {peak} of peak memory>"

    @property
    def title(self) -> str:
        """The headline of reports, which says of an estimate that it is one."""
        return f"{self._title_start} on one of {self.devices} devices, {self.machine or 'no machine'}"

    @property
    def _title_start(self) -> str:
        return "Cost" if self.is_counted else "Estimated cost"

    def _rows(self) -> Iterator[tuple[str, str]]:
        """Yield the main numbers with what they are called."""
        if self.seconds.value is not None:
            yield "estimated time", format_seconds(self.seconds.value)
            yield "  computing", format_seconds(self.compute_seconds.value or 0.0)
            yield "  communicating", format_seconds(self.communication_seconds.value or 0.0)
        yield "bytes sent", _bytes(self.communication_bytes)
        yield from ((f"  {kind}", f"{count}") for kind, count in self.counts.items())
        yield "operations", "unknown" if self.flops.value is None else format_count(self.flops.value)
        yield "bytes read and written", _bytes(self.memory_traffic_bytes)
        yield "peak memory", _bytes(self.peak_bytes)

    @property
    def quantities(self) -> dict[str, Quantity]:
        """The numbers by the names of their fields."""
        names = [item.name for item in attrs.fields(Cost) if item.name != "transcendentals"]
        names.insert(names.index("flops") + 1, "transcendentals")
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if isinstance(value, Quantity)}

    @property
    def kinds(self) -> tuple[KindCost, ...]:
        """The transfers by kind, the kinds in alphabetical order."""
        return tuple(self._kinds())

    @property
    def counts(self) -> dict[str, int]:
        """The number of transfers of each kind in the program."""
        # An op that is called from manual computations and from elsewhere is listed twice.
        ops = {item.op_id: item.kind for item in self.transfers}
        return dict(sorted(Counter(ops.values()).items()))

    @property
    def lines(self) -> tuple[LineCost, ...]:
        """The cost by line of the source, the longest first; transfers count for the op that they are for."""
        return _lines(self)

    def _kinds(self) -> Iterator[KindCost]:
        for kind, count in self.counts.items():
            items = [item for item in self.transfers if item.kind == kind]
            times = [item.runs * item.seconds for item in items if item.seconds is not None]
            yield KindCost(
                kind,
                count,
                sum(item.runs for item in items),
                sum(item.runs * item.bytes for item in items),
                sum(times) if len(times) == len(items) else None,
                items[0].how,
            )

    def to_json(self, *, transfers: bool = False, ops: bool = False) -> dict[str, Any]:
        """Return the cost as plain lists, dictionaries and numbers.

        Args:
            transfers: Whether to list every transfer, too; otherwise only the kinds.
            ops: Whether to list every op and every line of the source, too.
        """
        result: dict[str, Any] = {"machine": self.machine, "devices": self.devices, "layout": self.layout}
        result |= {"profile": self.profile, "is_counted": self.is_counted}
        result |= {name: attrs.asdict(quantity) for name, quantity in self.quantities.items()}
        result["collectives"] = [attrs.asdict(item) for item in self.kinds]
        if transfers:
            result["transfers"] = [attrs.asdict(item) for item in self.transfers]
        if ops:
            result["ops"] = [attrs.asdict(item) for item in self.ops]
            result["lines"] = [{**attrs.asdict(item), "seconds": item.seconds} for item in self.lines]
        result["notes"] = list(self.notes)
        return result


def _bytes(quantity: Quantity) -> str:
    return "unknown" if quantity.value is None else format_bytes(round(quantity.value))


def _lines(cost: Cost) -> tuple[LineCost, ...]:
    computing: dict[str, list[OpCost]] = {}
    moving: dict[str, list[Transfer]] = {}
    for op in cost.ops:
        computing.setdefault(op.location, []).append(op)
    for transfer in cost.transfers:
        moving.setdefault(transfer.location, []).append(transfer)
    lines = [_line(place, computing.get(place, []), moving.get(place, [])) for place in {**computing, **moving}]
    return tuple(sorted(lines, key=lambda line: (-(line.seconds or 0.0), -line.sent - line.bytes)))


def _line(location: str, ops: list[OpCost], transfers: list[Transfer]) -> LineCost:
    times = [*(item.seconds for item in ops), *(item.seconds for item in transfers)]
    has_times = None not in times
    return LineCost(
        location,
        len(ops),
        sum(item.flops for item in ops),
        sum(item.bytes for item in ops),
        sum(item.runs * item.bytes for item in transfers),
        sum(item.seconds or 0.0 for item in ops) if has_times else None,
        sum(item.runs * (item.seconds or 0.0) for item in transfers) if has_times else None,
    )
