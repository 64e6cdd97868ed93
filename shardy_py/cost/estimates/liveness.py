"""Peak memory of a device, from the live range of every stored value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from attrs import Factory, field

from shardy_py.cost.estimates.flatten import DONATED
from shardy_py.cost.estimates.fusion import CostFusion
from shardy_py.cost.estimates.graph import Node, Section, Tensor, without_repeats
from shardy_py.cost.estimates.kernel_order import Steps, breadth_first, readers
from shardy_py.cost.estimates.memory_timeline import LiveTensor, MemoryTimeline
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.cost.estimates.traffic import Traffic
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.ops import ConstantLike
from shardy_py.support.identity import identity
from shardy_py.values import define, frozen

HOW = (
    "by liveness: arguments, and at each op the stored values that are still used; results lie in donated arguments,"
    " elementwise ops and loops take the memory of what they are the last to use"
)
_ALIASED = DONATED[0]


@frozen
class MainMemory:
    """The memory of the main function on one device, in bytes.

    Args:
        arguments: The arguments.
        results: The results.
        peak: The largest sum of both and of temporary values.
        peak_op: The id of the op at which it is reached; -1 where arguments and results alone are the most.
        timeline: The bytes over the function.
    """

    arguments: int
    results: int
    peak: int
    peak_op: int = -1
    timeline: MemoryTimeline = field(default=MemoryTimeline(), eq=False, repr=False)


@define(eq=False)
class Liveness:
    """Search for the largest sum of live bytes.

    Args:
        fusion: The kernels.
        sizes: Measures values.
        traffic: Measures stored values.
        together: The nodes that run at the same time as one, by the id of each of them.
    """

    fusion: CostFusion
    sizes: LocalSizes
    traffic: Traffic
    together: Mapping[int, Sequence[Node]] = Factory(dict)
    _free: set[int] = field(factory=set, init=False)
    _apart: set[int] = field(factory=set, init=False)
    _during: list[tuple[int, int]] = field(factory=list, init=False)
    _live: list[tuple[int, int, int, int]] = field(factory=list, init=False)
    _replaced: set[int] = field(factory=set, init=False)

    def measure(self, main: Op, section: Section) -> MainMemory:
        """Return the memory of the main function.

        Args:
            main: The function.
            section: Its flat form.
        """
        arguments = sum(self.sizes.bytes(tensor.value) for tensor in section.parameters)
        results = self.sizes.total(main.function_results)
        aliased = self._alias(main, section)
        self._free = {identity(tensor) for tensor in section.parameters} | {identity(tensor) for tensor in aliased}
        returned_arguments = sum(self.sizes.bytes(item.value) for item in section.results if item.maker is None)
        inside = self._section(section, (), {identity(tensor) for tensor in section.results})
        reused = sum(self.sizes.bytes(tensor.value) for tensor in aliased)
        at_end = arguments + results - reused
        peak = arguments + inside + returned_arguments
        peak_op = max(self._during, key=lambda step: step[1])[0] if inside and peak > at_end else -1
        timeline = self._timeline(section, arguments + returned_arguments, at_end)
        return MainMemory(arguments, results, max(peak, at_end), peak_op, timeline)

    def _timeline(self, section: Section, always: int, at_end: int) -> MemoryTimeline:
        """Return the bytes at each step and at the end.

        Args:
            section: The flat form of the function.
            always: The bytes held all the time.
            at_end: The bytes of arguments and results.
        """
        end = len(self._during)
        arguments = (
            (item.value.id, self.sizes.bytes(item.value), 0, end) for item in without_repeats(section.parameters)
        )
        ops = (*(op for op, _ in self._during), -1)
        held = (*(always + inside for _, inside in self._during), at_end)
        # A result in the place of its operand: this one is gone when it is there.
        live = ((value, size, start, stop - (value in self._replaced)) for value, size, start, stop in self._live)
        return MemoryTimeline(ops, held, tuple(LiveTensor(*row) for row in chain(arguments, live) if row[1]))

    def _alias(self, main: Op, section: Section) -> list[Tensor]:
        """Return the results that lie in the memory of donated arguments."""
        arg_attrs: Sequence[Mapping[str, Any]] = main.attributes.get("arg_attrs") or ({},) * len(section.parameters)
        aliased: dict[int, Tensor] = {}
        free: list[int] = []
        for tensor, attributes in zip(section.parameters, arg_attrs, strict=True):
            index = attributes.get(_ALIASED)
            if isinstance(index, int) and index < len(section.results):
                aliased[identity(section.results[index])] = section.results[index]
            elif not tensor.is_kept:
                free.append(self.sizes.bytes(tensor.value))
        for tensor in section.results:
            size = self.sizes.bytes(tensor.value)
            if identity(tensor) not in aliased and size in free and tensor.maker is not None:
                free.remove(size)
                aliased[identity(tensor)] = tensor
        return [tensor for tensor in aliased.values() if tensor.maker is not None]

    def _section(self, section: Section, owned: Sequence[Tensor], result_ids: set[int]) -> int:
        """Return the largest sum of bytes of the values that a section owns at its start, or makes."""
        owned = without_repeats(owned)
        steps, dying = self._steps(section, owned, result_ids)
        live = peak = sum([self._bytes(tensor) for tensor in owned])
        for number, step in enumerate(steps):
            ends = dying.get(number, ())
            freed = sum([self._bytes(tensor) for tensor in ends]) if ends else 0
            total, during = 0, live
            for node in step:
                result_bytes = self._result_bytes(node, ends)
                inside = max([self._inner(node, inner) for inner in node.sections]) if node.sections else 0
                reused = self._reused(node, result_bytes, ends) if ends else 0
                if reused and section.owner is None:
                    self._replaced.update(item.value.id for item in ends if self._bytes(item) == reused)
                total += result_bytes
                during += (
                    result_bytes - reused + inside + round(self.traffic.extra_bytes(node) + node.work.temporary_bytes)
                )
            if section.owner is None:
                self._during.append((step[-1].op.id, during))
            peak = max(peak, during)
            live += total - freed
            for node in step:
                for item in node.outputs:
                    if not item.users and identity(item) not in result_ids:
                        live -= self._bytes(item)
        return peak

    def _steps(
        self, section: Section, owned: Sequence[Tensor], result_ids: set[int]
    ) -> tuple[Steps, dict[int, list[Tensor]]]:
        """Return the steps of a section and, by the number of a step, the values that are read last in it."""
        stored = [item for node in section.nodes for item in node.outputs if self.fusion.is_stored(item)]
        reader_positions = {identity(item): readers(section, item) for item in (*owned, *stored)}
        is_ordered = not self.traffic.profile.runs_breadth_first
        steps = (
            [[node] for node in section.nodes]
            if is_ordered
            else breadth_first(section, reader_positions, self.together)
        )
        numbers = {node.position: number for number, step in enumerate(steps) for node in step}
        dying: dict[int, list[Tensor]] = {}
        for item in (*owned, *stored):
            places = reader_positions[identity(item)]
            last = max([numbers[place] for place in places]) if places else None
            is_kept = identity(item) in result_ids
            if last is not None and not is_kept:
                dying.setdefault(last, []).append(item)
            if section.owner is None and item.maker is not None:
                start = numbers[item.maker.position]
                stop = len(steps) if is_kept else start if last is None else last
                self._live.append((item.value.id, self._bytes(item), start, stop))
        return steps, dying

    def _inner(self, node: Node, section: Section) -> int:
        """Return the bytes of a region besides the values that it gets."""
        owned, borrowed_ids = [], {identity(tensor) for tensor in section.parameters}
        copies = []
        numbers = {identity(tensor): number for number, tensor in enumerate(section.parameters)}
        for item in node.carried:
            if item.is_unchanged:
                continue
            places = {numbers[identity(tensor)] for tensor in item.parameters if identity(tensor) in numbers}
            carried_parameters = [section.parameters[number] for number in sorted(places)]
            owned += carried_parameters
            borrowed_ids -= {identity(tensor) for tensor in carried_parameters}
            copied = self.traffic.carried_copies(section, item)
            if copied:
                # The next value lies where the old one was, and not where the copy of that is.
                self._apart |= {identity(tensor) for tensor in item.yielded}
            # What becomes the old value of something else has another copy there.
            copies += [Tensor(tensor.value, users=tensor.users) for tensor in copied[1:]]
        self._free |= borrowed_ids
        inside = self._section(section, [*owned, *copies], {identity(tensor) for tensor in section.results})
        return max(0, inside - sum(self._bytes(tensor) for tensor in without_repeats(owned)))

    def _result_bytes(self, node: Node, ends: Sequence[Tensor]) -> int:
        """Return the bytes of the results of a node that lie nowhere else."""
        size = 0
        if not node.carried:
            for tensor in node.outputs:
                size += self._bytes(tensor)
            return size
        for item in node.carried:
            if item.output is None:
                continue
            is_dying = any(item.initial is tensor for tensor in ends)
            if item.is_unchanged and not is_dying:
                self._free.add(identity(item.output))
            size += self._bytes(item.output)
        return size

    def _reused(self, node: Node, result_bytes: int, ends: Sequence[Tensor]) -> int:
        """Return the bytes of the results that reuse the memory of operands which are read last here."""
        if node.carried:
            initial = {identity(item.initial): self._bytes(item.initial) for item in node.carried}
            return min(
                result_bytes, sum(size for key, size in initial.items() if any(key == identity(item) for item in ends))
            )
        if not self.fusion.is_own_kernel(node) or any(identity(tensor) in self._apart for tensor in node.outputs):
            return 0
        return result_bytes if result_bytes in [self._bytes(tensor) for tensor in ends] else 0

    def _bytes(self, tensor: Tensor) -> int:
        if identity(tensor) in self._free or (tensor.maker is not None and ConstantLike in tensor.maker.kind.traits):
            return 0
        return self.traffic.stored_bytes(tensor)
