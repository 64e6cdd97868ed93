"""Lifetimes of the values of a flat program: when each is there, and which of them share a buffer.

Time goes from kernel to kernel; the kernels of a region run before the op that it belongs to ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import Factory, field

from shardy_py.cost.estimates.buffers import BufferGroups, ValueBuffer, ticks_between
from shardy_py.cost.estimates.fusion import CostFusion
from shardy_py.cost.estimates.graph import Carried, Node, Section, Tensor, without_repeats
from shardy_py.cost.estimates.kernel_order import Steps, breadth_first, readers
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.cost.estimates.traffic import Traffic
from shardy_py.ir.interfaces.ops import ConstantLike, Elementwise
from shardy_py.support.identity import identity
from shardy_py.values import define

_Spans = dict[int, tuple[int, int]]


@define(eq=False)
class Lifetimes:
    """Search for the times of all values.

    Args:
        fusion: The kernels.
        sizes: Measures values.
        traffic: Measures stored values.
        together: The nodes that run at the same time as one, by the id of each of them.
        groups: The values by their buffers.
        copies: The buffers of copies.
        steps: The first and the last time of each step of the main function.
        last_nodes: The last node of each of these.
        replaced: The ids of values that another one is written over as they are read last.
        clock: The time.
    """

    fusion: CostFusion
    sizes: LocalSizes
    traffic: Traffic
    together: Mapping[int, Sequence[Node]] = Factory(dict)
    groups: BufferGroups = field(factory=BufferGroups, init=False)
    copies: list[ValueBuffer] = field(factory=list, init=False)
    steps: list[tuple[int, int]] = field(factory=list, init=False)
    last_nodes: list[Node] = field(factory=list, init=False)
    replaced: set[int] = field(factory=set, init=False)
    clock: int = field(default=0, init=False)
    _spans: _Spans = field(factory=dict, init=False)
    _ties: list[tuple[Tensor, Tensor]] = field(factory=list, init=False)
    _unchanged: list[tuple[Tensor, Tensor]] = field(factory=list, init=False)
    _shared: list[tuple[Tensor, Tensor]] = field(factory=list, init=False)
    _apart: set[int] = field(factory=set, init=False)
    _tied: set[int] = field(factory=set, init=False)
    _operand_copies: dict[tuple[int, tuple[int, ...]], ValueBuffer] = field(factory=dict, init=False)
    _copied_uses: Counter[int] = field(factory=Counter, init=False)
    _kernels: dict[int, set[int]] = field(factory=dict, init=False)

    def collect(self, main: Section, aliases: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Find the buffers.

        Args:
            main: The flat form of the main function.
            aliases: Donated arguments, each with the result that lies in its memory.
        """
        for kernel in self.fusion:
            if not kernel.is_halo:
                self._kernels[identity(kernel.root)] = {identity(node) for node in kernel.nodes}
        self._section(main, [argument for argument, _ in aliases])
        for result in main.results:
            if identity(result) in self.groups:
                self.groups[identity(result)].is_result = True
        for argument, result in aliases:
            if identity(argument) in self.groups:
                self.groups[identity(argument)].is_argument = True
                self.groups.join(identity(argument), identity(result))
        for initial, output in self._unchanged:
            if identity(initial) in self.groups:
                self.groups.join(identity(initial), identity(output))
            else:
                self.groups.remove(identity(output))
        for first, second in self._ties:
            self.groups.join(identity(first), identity(second))
        for output, operand in self._shared:
            self._share(output, operand)

    def span(self, tensor: Tensor) -> tuple[int, int] | None:
        """Return the first and the last time of a value; None where it is nowhere in memory."""
        return self._spans.get(identity(tensor))

    def _section(self, section: Section, owned: Sequence[Tensor]) -> None:
        """Find the times of the values of a section, and of those that it has at its start."""
        begin = self.clock
        escaping = {identity(tensor) for tensor in section.results}
        steps, dying = self._steps(section, owned, escaping)
        starts = {identity(tensor): begin for tensor in owned}
        ends: dict[int, int] = {}
        for number, step in enumerate(steps):
            first = self.clock
            for node in step:
                self._regions(node, dying.get(number, ()))
            for tensor in dying.get(number, ()):
                ends[identity(tensor)] = self.clock
            for node in step:
                ends |= self._copies_of(node, starts, begin)
                for tensor in node.outputs:
                    starts[identity(tensor)] = begin if node.is_hoisted else self.clock
                    self._find_shared(node, tensor, dying.get(number, ()))
            if section.owner is None:
                self.steps.append((first, self.clock))
                self.last_nodes.append(step[-1])
            self.clock += 1
        last = max(begin, self.clock - 1)
        hoisted = {identity(tensor) for node in section.nodes if node.is_hoisted for tensor in node.outputs}
        for tensor in (*owned, *(item for node in section.nodes for item in node.outputs)):
            key = identity(tensor)
            is_kept = key in escaping or key in hoisted
            self._add(tensor, starts[key], last if is_kept else ends.get(key, starts[key]))

    def _add(self, tensor: Tensor, start: int, stop: int) -> None:
        size = self._bytes(tensor)
        if size and identity(tensor) not in self._spans:
            self._spans[identity(tensor)] = start, stop
            self.groups.add(identity(tensor), ValueBuffer(size, ticks_between(start, stop)))

    def _steps(
        self, section: Section, owned: Sequence[Tensor], escaping: set[int]
    ) -> tuple[Steps, dict[int, list[Tensor]]]:
        """Return the steps of a section and, by the number of a step, the values that are read last in it."""
        stored = [item for node in section.nodes for item in node.outputs if self.fusion.is_stored(item)]
        reader_positions = {identity(item): readers(section, item) for item in (*owned, *stored)}
        steps = (
            breadth_first(section, reader_positions, self.together, self.traffic.copying_kernels)
            if self.traffic.profile.runs_breadth_first
            else [[node] for node in section.nodes]
        )
        numbers = {node.position: number for number, step in enumerate(steps) for node in step}
        dying: dict[int, list[Tensor]] = {}
        for item in (*owned, *stored):
            positions = reader_positions[identity(item)]
            if positions and identity(item) not in escaping:
                dying.setdefault(max([numbers[position] for position in positions]), []).append(item)
        return steps, dying

    def _regions(self, node: Node, dying: Sequence[Tensor]) -> None:
        """Find the times of the values in the regions of a node, and tie those that are in its buffers."""
        changing = [item for item in node.carried if not item.is_unchanged]
        for section in node.sections:
            begin = self.clock
            places = {identity(tensor): tensor for tensor in section.parameters}
            owned = [tensor for item in changing for tensor in item.parameters if identity(tensor) in places]
            copied = {identity(tensor): tensor for item in changing for tensor in self._copied(section, item)}
            self._section(section, without_repeats(owned))
            last = max(begin, self.clock - 1)
            for item in changing:
                self._keep_through(section, item, begin, last)
                self._hold_both(section, item, copied)
            for key, tensor in copied.items():
                start, stop = self._spans.get(key, (begin, last))
                self.copies.append(ValueBuffer(self._bytes(tensor), ticks_between(start, stop)))
        for item in node.carried:
            self._tie_carried(node, item, dying)
        if node.sections and not node.carried:
            for section in node.sections:
                for output, result in zip(node.outputs, section.results, strict=False):
                    self._tie(output, result, section)

    def _copied(self, section: Section, item: Carried) -> list[Tensor]:
        """Return the tensors that a region copies, so that the next value of a carried one can be where that was."""
        copied = self.traffic.carried.in_region(section, item)
        if copied:
            self._apart |= {identity(tensor) for tensor in item.yielded}
        return copied

    def _keep_through(self, section: Section, item: Carried, begin: int, last: int) -> None:
        """Keep a carried tensor to the end of a region that yields no next value, such as a condition."""
        results = {identity(tensor) for tensor in section.results}
        if any(identity(tensor) in results for tensor in item.yielded):
            return
        for tensor in item.parameters:
            if identity(tensor) in self._spans and any(tensor is other for other in section.parameters):
                self.groups[identity(tensor)].ticks |= ticks_between(begin, last)

    def _hold_both(self, section: Section, item: Carried, copied: Mapping[int, Tensor]) -> None:
        """Add memory for a carried tensor that is read while its next value is written, unless a copy is read."""
        result_ids = {identity(tensor) for tensor in section.results}
        results = [tensor for tensor in item.yielded if identity(tensor) in result_ids]
        for tensor in item.parameters:
            for result in results:
                span, next_span = self.span(tensor), self.span(result)
                if identity(tensor) in copied or span is None or next_span is None or result.maker is None:
                    continue
                stop, start = span[1], next_span[0]
                if stop > start or (stop == start and not self._is_elementwise(tensor, result.maker)):
                    self.copies.append(ValueBuffer(self._bytes(tensor), ticks_between(start, stop)))

    def _tie_carried(self, node: Node, item: Carried, dying: Sequence[Tensor]) -> None:
        if item.is_unchanged:
            if item.output is not None:
                self._unchanged.append((item.initial, item.output))
            return
        tensors = [*item.parameters, *(() if item.output is None else (item.output,))]
        self._ties += [(tensors[0], other) for other in tensors[1:]]
        if tensors:
            for section in node.sections:
                for tensor in item.yielded:
                    self._tie(tensors[0], tensor, section)
            if any(item.initial is tensor for tensor in dying) and identity(item.initial) not in self._tied:
                self._tied.add(identity(item.initial))
                self._ties.append((tensors[0], item.initial))

    def _tie(self, tensor: Tensor, result: Tensor, section: Section) -> None:
        """Let what a region hands on lie in a buffer of its op, unless something else is there already."""
        maker = result.maker
        if maker is not None and maker.section is section and identity(result) not in self._tied:
            self._tied.add(identity(result))
            self._ties.append((tensor, result))

    def _copies_of(self, node: Node, starts: Mapping[int, int], begin: int) -> dict[int, int]:
        """Add the copies that the backend makes for a node; return the times at which what they stand for is gone."""
        now, ends = self.clock, {}
        is_early = self.traffic.profile.runs_breadth_first
        for tensor, shape, size in self.traffic.operand_copies(node):
            start = starts.get(identity(tensor), begin) if is_early else now
            key = identity(tensor), shape
            if key in self._operand_copies:
                self._operand_copies[key].ticks |= ticks_between(start, now)
            else:
                self._operand_copies[key] = ValueBuffer(size, ticks_between(start, now))
                self.copies.append(self._operand_copies[key])
            self._copied_uses[identity(tensor)] += 1
            if is_early and self._copied_uses[identity(tensor)] == len(tensor.users):
                ends[identity(tensor)] = start
        size = round(self.traffic.extra_bytes(node) + node.work.temporary_bytes)
        if size:
            self.copies.append(ValueBuffer(size, ticks_between(now, now)))
        return ends

    def _find_shared(self, node: Node, output: Tensor, dying: Sequence[Tensor]) -> None:
        """Note an operand that a kernel may write its result over: element by element, or as the op does by itself."""
        if identity(output) in self._apart:
            return
        if not self.fusion.is_own_kernel(node):
            operand = self._overwritten(node, output)
            if operand is not None and any(operand is other for other in dying) and self._is_alike(operand, output):
                self._shared.append((output, operand))
            return
        for operand in dying:
            if self._is_alike(operand, output) and self._is_elementwise(operand, node):
                self._shared.append((output, operand))

    def _is_alike(self, operand: Tensor, output: Tensor) -> bool:
        if self._bytes(operand) != self._bytes(output):
            return False
        return self.sizes.shape(operand.value) == self.sizes.shape(output.value)

    def _is_elementwise(self, operand: Tensor, root: Node) -> bool:
        """Return whether a kernel reads an operand for the element that it writes only, or writes into it."""
        inside = self._kernels.get(identity(root), {identity(root)})
        waiting, seen = [operand], set()
        while waiting:
            tensor = waiting.pop()
            for user in tensor.users:
                if identity(user) not in inside or identity(user) in seen:
                    continue
                seen.add(identity(user))
                if user is root and tensor is operand and self._updated(user) is operand:
                    continue
                if Elementwise not in user.kind.traits:
                    return False
                waiting += user.outputs if user is not root else ()
        return bool(seen)

    def _overwritten(self, node: Node, output: Tensor) -> Tensor | None:
        """Return the operand that an op which is a kernel of its own writes over, unless it reads it as another one."""
        numbers = () if node.kind.cost is None else node.kind.cost.get_overwritten_operands(node.op)
        for number, result in zip(numbers, node.outputs, strict=False):
            if result is output:
                operand = node.inputs[number]
                return operand if sum(tensor is operand for tensor in node.inputs) == 1 else None
        return None

    def _updated(self, node: Node) -> Tensor | None:
        """Return the operand that an op writes into."""
        number = None if node.kind.cost is None else node.kind.cost.get_updated_operand(node.op)
        return None if number is None else node.inputs[number]

    def _share(self, output: Tensor, operand: Tensor) -> None:
        """Let a result share the buffer of an operand, if nothing else is in either meanwhile."""
        if identity(output) not in self.groups or identity(operand) not in self.groups:
            return
        ours, theirs = self.groups[identity(output)], self.groups[identity(operand)]
        start = self._spans[identity(output)][0]
        is_placed = ours.is_result and (theirs.is_result or theirs.is_argument)
        meet_only_at_start = all(run == (start, start) for run in ours.ticks.common_runs(theirs.ticks))
        if ours.bytes == theirs.bytes and not is_placed and meet_only_at_start:
            self.groups.join(identity(operand), identity(output))
            self.replaced.add(identity(operand))

    def _bytes(self, tensor: Tensor) -> int:
        if tensor.maker is not None and ConstantLike in tensor.maker.kind.traits:
            return 0
        return self.traffic.stored_bytes(tensor)
