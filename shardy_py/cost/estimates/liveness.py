"""Peak memory of a device, from the buffers of all stored values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import Factory, field

from shardy_py.cost.estimates.buffers import heap_bytes
from shardy_py.cost.estimates.flatten import DONATED
from shardy_py.cost.estimates.fusion import CostFusion
from shardy_py.cost.estimates.graph import Node, Section, Tensor, without_repeats
from shardy_py.cost.estimates.lifetimes import Lifetimes
from shardy_py.cost.estimates.memory_timeline import LiveTensor, MemoryTimeline
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.cost.estimates.traffic import Traffic
from shardy_py.ir.graph.program import Op
from shardy_py.support.identity import identity
from shardy_py.values import define, frozen

HOW = (
    "by liveness: arguments, results, and at each op the stored values that are still used; results lie in donated"
    " arguments, temporary values in results that are not there yet; elementwise ops, sorts, scatters and loops take"
    " the memory of what they are the last to use"
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

    def measure(self, main: Op, section: Section) -> MainMemory:
        """Return the memory of the main function.

        Args:
            main: The function.
            section: Its flat form.
        """
        arguments = sum(self.sizes.bytes(tensor.value) for tensor in section.parameters)
        results = self.sizes.total(main.function_results)
        aliases = self._aliases(main, section)
        lifetimes = Lifetimes(self.fusion, self.sizes, self.traffic, self.together)
        lifetimes.collect(section, [(argument, result) for argument, result in aliases if result.maker is not None])
        reserves_results = self.traffic.profile.reserves_results
        buffers = (*lifetimes.groups, *lifetimes.copies)
        heap = heap_bytes(buffers, lifetimes.clock, reserves_results=reserves_results)
        reused = sum(self.sizes.bytes(result.value) for _, result in aliases)
        at_end = arguments + results - reused
        # Arguments that are results are copied at once.
        returned = sum(self.sizes.bytes(tensor.value) for tensor in section.results if tensor.maker is None)
        always = at_end if reserves_results else arguments + returned
        held = [always + max(heap[first : last + 1]) for first, last in lifetimes.steps]
        most = max(held, default=0)
        peak_op = lifetimes.last_nodes[held.index(most)].op.id if most > at_end else -1
        ops = (*(node.op.id for node in lifetimes.last_nodes), -1)
        timeline = MemoryTimeline(ops, (*held, at_end), tuple(_live_tensors(section, lifetimes, self.sizes)))
        return MainMemory(arguments, results, max(most, at_end), peak_op, timeline)

    def _aliases(self, main: Op, section: Section) -> list[tuple[Tensor, Tensor]]:
        """Return donated arguments, each with the result that lies in its memory."""
        arg_attrs: Sequence[Mapping[str, Any]] = main.attributes.get("arg_attrs") or ({},) * len(section.parameters)
        aliased: dict[int, tuple[Tensor, Tensor]] = {}
        free: list[tuple[int, Tensor]] = []
        for tensor, attributes in zip(section.parameters, arg_attrs, strict=True):
            index = attributes.get(_ALIASED)
            if isinstance(index, int) and index < len(section.results):
                aliased[identity(section.results[index])] = tensor, section.results[index]
            elif not tensor.is_kept:
                free.append((self.sizes.bytes(tensor.value), tensor))
        for tensor in section.results:
            size = self.sizes.bytes(tensor.value)
            argument = next((pair for pair in free if pair[0] == size), None)
            if identity(tensor) not in aliased and argument is not None and tensor.maker is not None:
                free.remove(argument)
                aliased[identity(tensor)] = argument[1], tensor
        return list(aliased.values())


def _live_tensors(section: Section, lifetimes: Lifetimes, sizes: LocalSizes) -> Iterator[LiveTensor]:
    """Yield the arguments and the stored values of the main function with the steps in which they are held."""
    end = len(lifetimes.steps)
    for tensor in without_repeats(section.parameters):
        if size := sizes.bytes(tensor.value):
            yield LiveTensor(tensor.value.id, size, 0, end)
    step_of = {tick: number for number, (first, last) in enumerate(lifetimes.steps) for tick in range(first, last + 1)}
    results = {identity(tensor) for tensor in section.results}
    for node in section.nodes:
        for tensor in node.outputs:
            span = lifetimes.span(tensor)
            if span is not None and identity(tensor) in lifetimes.groups:
                last = step_of[span[1]] - (identity(tensor) in lifetimes.replaced)
                size = lifetimes.groups[identity(tensor)].bytes
                yield LiveTensor(tensor.value.id, size, step_of[span[0]], end if identity(tensor) in results else last)
