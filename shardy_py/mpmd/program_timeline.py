"""The timeline of a program over several meshes on a machine: each fragment and each transfer with its own time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shardy_py.api.propagate import propagate
from shardy_py.api.summary import tensor_bytes
from shardy_py.cost.machines.machine import Machine
from shardy_py.cost.machines.toml import MachineLike, get_machine
from shardy_py.ir.graph.op_names import RETURN
from shardy_py.mpmd.dialect.op_names import TRANSFER
from shardy_py.mpmd.execution import LoweredSteps
from shardy_py.support.texts import format_bytes, format_seconds
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.mpmd.pipeline_program import PipelineProgram


@frozen
class StepEvent:
    """A fragment that runs, or a transfer.

    Args:
        name: The name of the fragment's function, or the ends of the transfer.
        mesh: The mesh that runs it, or that it goes to.
        start: The time at which it starts, in seconds.
        end: The time at which it ends.
        is_transfer: Whether it is a transfer, which occupies no mesh.
    """

    name: str
    mesh: str
    start: float
    end: float
    is_transfer: bool


@frozen
class ProgramTimeline:
    """Events of a program on a machine, and the bytes that meshes hold.

    Args:
        meshes: The names of the meshes, in order.
        events: The fragments and transfers, in the order of the program.
        peak_bytes: Mesh to the most bytes that each of its devices holds between fragments.
        sent_bytes: The bytes that each device sends to other meshes, in all transfers.
    """

    meshes: tuple[str, ...]
    events: tuple[StepEvent, ...]
    peak_bytes: Mapping[str, int]
    sent_bytes: int

    @property
    def makespan(self) -> float:
        """The time at which the last event ends, in seconds."""
        return max((event.end for event in self.events), default=0.0)

    def busy(self, mesh: str) -> float:
        """Return the time in which a mesh runs fragments."""
        return sum(event.end - event.start for event in self.events if event.mesh == mesh and not event.is_transfer)

    @property
    def bubble(self) -> float:
        """The part of the time of all meshes in which they idle."""
        total = self.makespan * len(self.meshes)
        return 1.0 - sum(map(self.busy, self.meshes)) / total if total else 0.0

    def trace_events(self) -> list[dict[str, Any]]:
        """Return the timeline in the format of Chrome's traces, which Perfetto shows: a process for each mesh."""
        numbers = {name: number for number, name in enumerate(self.meshes)}
        names = [
            {"name": "process_name", "ph": "M", "pid": number, "args": {"name": name}}
            for name, number in numbers.items()
        ]
        return names + [
            {
                "name": event.name,
                "cat": "transfer" if event.is_transfer else "fragment",
                "ph": "X",
                "pid": numbers[event.mesh],
                "tid": int(event.is_transfer),
                "ts": 1e6 * event.start,
                "dur": 1e6 * (event.end - event.start),
            }
            for event in self.events
        ]

    def __str__(self) -> str:
        """Return a line for each mesh, and the figures of all."""
        lines = []
        for mesh in self.meshes:
            count = sum(event.mesh == mesh and not event.is_transfer for event in self.events)
            work = f"{count} fragments, busy {format_seconds(self.busy(mesh))}"
            lines.append(f"{mesh}: {work}, holds up to {format_bytes(self.peak_bytes[mesh])} per device")
        figures = f"makespan {format_seconds(self.makespan)}, bubble {self.bubble:.1%}"
        return "\n".join([*lines, f"{figures}, {format_bytes(self.sent_bytes)} sent per device"])


def simulate_program(program: PipelineProgram, machine: MachineLike) -> ProgramTimeline:
    """Return the timeline of a program on a machine.

    A fragment starts when its mesh is free and its operands are there. Its time is that of its ops and of the
    communication inside of its mesh. A transfer goes over the slowest link of the machine, and occupies no mesh; one
    between memories of a mesh takes no time.

    Args:
        program: The program.
        machine: The machine, by name or as a value.
    """
    known = get_machine(machine)
    lowered = LoweredSteps.of(program)
    link = min(known.links, key=lambda item: item.bandwidth)
    seconds = {name: _seconds(text, program, known) for name, text in lowered.texts.items()}
    sizes = {
        id_: tensor_bytes(type_.tensor, type_.sharding, program.topology.mesh(type_.mesh)) or 0
        for id_, type_ in lowered.types.items()
    }
    free = dict.fromkeys(program.topology.names, 0.0)
    ready = {id_: 0.0 for id_, _ in lowered.arguments}
    events, sent = [], 0
    for step in lowered.steps:
        if step.kind == RETURN:
            continue
        start = max((ready[id_] for id_ in step.operands), default=0.0)
        if step.kind == TRANSFER:
            size, source = sizes[step.operands[0]], lowered.types[step.operands[0]].mesh
            is_sent = source != step.mesh
            end = start + (link.latency + size / link.bandwidth if is_sent else 0.0)
            sent += size if is_sent else 0
            event = StepEvent(f"{source} to {step.mesh}", step.mesh, start, end, is_transfer=True)
        else:
            start = max(start, free[step.mesh])
            end = free[step.mesh] = start + seconds[step.function]
            event = StepEvent(step.function, step.mesh, start, end, is_transfer=False)
        ready.update(dict.fromkeys(step.results, end))
        events.append(event)
    on_device = {id_: 0 if lowered.types[id_].is_on_host else size for id_, size in sizes.items()}
    peaks = _peaks(lowered, on_device, program.topology.names)
    return ProgramTimeline(program.topology.names, tuple(events), peaks, sent)


def _seconds(text: str, program: PipelineProgram, machine: Machine) -> float:
    """Return the time of a module on its mesh, with the communication in it."""
    return propagate(text, registry=program.registry).cost(machine=machine).seconds.value or 0.0


def _peaks(lowered: LoweredSteps, sizes: Mapping[int, int], meshes: Sequence[str]) -> dict[str, int]:
    """Return the most bytes of values that each mesh holds at once, arguments for the whole time."""
    held = dict.fromkeys(meshes, 0)
    for id_, mesh in lowered.arguments:
        held[mesh] += sizes[id_]
    peaks, arguments = dict(held), {id_ for id_, _ in lowered.arguments}
    last_uses = {id_: number for number, step in enumerate(lowered.steps) for id_ in step.operands}
    for number, step in enumerate(lowered.steps):
        for id_ in step.results:
            held[step.mesh] += sizes[id_]
        for mesh in meshes:
            peaks[mesh] = max(peaks[mesh], held[mesh])
        ended = {id_ for id_ in step.operands if last_uses[id_] == number and id_ not in arguments}
        ended |= {id_ for id_ in step.results if id_ not in last_uses}
        for id_ in ended:
            held[lowered.types[id_].mesh] -= sizes[id_]
    return peaks
