"""One program of a module for all sizes of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import evolve, field

from shardy_py.torch.modules.joint import JointTrace
from shardy_py.torch.modules.size_expressions import ExpressionFitter, SizeExpression, Sizes
from shardy_py.torch.modules.splitting import SplitGraph
from shardy_py.torch.modules.step import LocalStep, differentiable
from shardy_py.torch.modules.symbolic_graphs import GraphFitter
from shardy_py.torch.modules.symbolic_trace import Samples, Shapes, SymbolicTrace, sampled
from shardy_py.torch.parallel.process_groups import ProcessGroups
from shardy_py.values import frozen


@frozen(eq=False)
class SymbolicStep:
    """A program for all sizes that its guards allow.

    Attributes:
        trace: What was traced, with the guards of the module.
        step: The program; its ports are those of the example.
        least: The least sizes of those that it was made at. What is clamped, such as a part of a size that is cut into
            more parts than it fills, is another number at smaller ones.
        largest: The largest sizes of those that it was made at.
        shapes: The shapes of its arguments and outputs, as expressions of sizes.
        conditions: What has to be an integer, of the sizes of shards and the numbers of the program.
    """

    trace: SymbolicTrace = field(repr=False)
    step: LocalStep
    least: Sizes
    largest: Sizes
    shapes: tuple[tuple[SizeExpression, ...], ...] = field(repr=False)
    conditions: frozenset[SizeExpression] = field(repr=False)

    def at(self, shapes: Shapes) -> LocalStep | None:
        """Return the program with the ports of some shapes of inputs, or None if it is not for these."""
        sizes = self.trace.symbols.sizes_of(shapes)
        if sizes is None or not self.trace.holds(sizes):
            return None
        if any(not least <= size <= most for least, size, most in zip(self.least, sizes, self.largest, strict=True)):
            return None
        values = self.trace.symbols.by_symbol(sizes)
        if any(expression.at(values).denominator > 1 for expression in self.conditions):
            return None
        whole = iter([tuple(int(size.at(values)) for size in shape) for shape in self.shapes])
        arguments = tuple(port.resized(next(whole)) for port in self.step.arguments)
        outputs = tuple(None if port is None else port.resized(next(whole)) for port in self.step.outputs)
        trace = evolve(self.step.trace, outputs=self.trace.outputs_at(sizes))
        return evolve(self.step, trace=trace, arguments=arguments, outputs=outputs, sizes=sizes)

    def too_small(self, names: Sequence[str], shapes: Shapes) -> Iterator[tuple[str, int, int, int]]:
        """Yield the inputs in some shapes that are too small for the program, with dimension, size and least size."""
        least = dict(zip(self.trace.symbols.symbols, self.least, strict=True))
        for name, shape, dims in zip(names, shapes, self.trace.symbols.shapes, strict=True):
            for number, (size, dim) in enumerate(zip(shape, dims, strict=True)):
                if size < least.get(dim, 0):
                    yield name, number, size, least.pop(dim)


def make_symbolic_step(
    trace: SymbolicTrace, groups: ProcessGroups, make: Callable[[JointTrace], LocalStep]
) -> SymbolicStep | None:
    """Return the program of a module for all sizes, or None if it is another one at other sizes.

    It is made at some sizes whose remainders by the number of devices are those of the example. They have one graph,
    whose numbers are expressions of sizes. Where it depends on small sizes what is cheaper to move, it is for larger
    ones. It is for the sizes between the least and the largest ones that it was made at.

    Args:
        trace: The module, traced with symbols for sizes.
        groups: The process groups: all processes take the same decisions.
        make: Makes the program at the sizes of a trace.
    """
    device_count = len(groups.ranks)
    reach = 1 + 16 * device_count
    for factor in (1, reach):
        varied, samples = sampled(trace, device_count, factor, reach)
        if samples is None:
            return None
        steps: list[LocalStep] = []
        for sizes in samples.near:
            steps.append(make(varied.at(sizes)))
            if not groups.all_agree(_structure(steps[-1]) == _structure(steps[0])):
                break
        else:
            return _reaching(varied, samples, steps, groups, make)
    return None


def _reaching(
    trace: SymbolicTrace,
    samples: Samples,
    steps: Sequence[LocalStep],
    groups: ProcessGroups,
    make: Callable[[JointTrace], LocalStep],
) -> SymbolicStep | None:
    """Return the program by those at near sizes, for the sizes as far away as it is the same there."""
    sizes = samples.near
    best = _fitted(trace, sizes, steps)
    if not groups.all_agree(best is not None):
        return None
    for candidates in (samples.smaller, samples.larger):
        for far in [far for far in candidates if far not in sizes]:
            step = make(trace.at(far))
            is_same = _structure(step) == _structure(steps[0])
            further = _fitted(trace, [*sizes, far], [*steps, step]) if is_same else None
            if groups.all_agree(further is not None):
                best, sizes, steps = further, [*sizes, far], [*steps, step]
                break
    return best


def _structure(step: LocalStep) -> Any:
    """Return what is the same in programs that differ in sizes only, as far as it is quick to see."""
    graphs = step.graphs.forward, step.graphs.backward, step.graphs.inference
    operators = [[node.target for node in graph.graph.nodes if node.op == "call_function"] for graph in graphs]
    return [port.placements for port in _ports(step)], [len(shape) for shape in step.local_shapes], operators


def _fitted(trace: SymbolicTrace, samples: Sequence[Sizes], steps: Sequence[LocalStep]) -> SymbolicStep | None:
    """Return the program for all sizes, by the programs at some, or None if a number of theirs is no expression."""
    symbols = trace.symbols.symbols
    first, fitter = steps[0], GraphFitter(ExpressionFitter(symbols, samples, trace.expressions()))
    shapes = _fitted_shapes(fitter, [_port_shapes(step) for step in steps])
    local_shapes = _fitted_shapes(fitter, [step.local_shapes for step in steps])
    forward = fitter.module([step.graphs.forward for step in steps])
    backward = fitter.module([step.graphs.backward for step in steps])
    is_forward = first.graphs.inference is first.graphs.forward
    inference = forward if is_forward else fitter.module([step.graphs.inference for step in steps])
    if None in (forward, backward, inference, shapes, local_shapes):
        return None
    graphs = SplitGraph(forward, backward, inference, first.graphs.output_count)
    function = differentiable(first.trace, graphs, len(symbols)) if first.function is not None else None
    step = evolve(first, graphs=graphs, function=function)
    least, largest = (tuple(map(choose, zip(*samples, strict=True))) for choose in (min, max))
    return SymbolicStep(trace, step, least, largest, shapes or (), frozenset(fitter.conditions))


def _ports(step: LocalStep) -> list[Any]:
    return [port for port in (*step.arguments, *step.outputs) if port is not None]


def _port_shapes(step: LocalStep) -> tuple[tuple[int, ...], ...]:
    return tuple(port.shape for port in _ports(step))


def _fitted_shapes(
    fitter: GraphFitter, shapes: Sequence[Sequence[tuple[int, ...]]]
) -> tuple[tuple[SizeExpression, ...], ...] | None:
    """Return shapes, which are given at each of the sizes, as expressions, or None if one fits nothing."""
    fitted: list[tuple[SizeExpression, ...]] = []
    for items in zip(*shapes, strict=True):
        sizes = [fitter.fit(values) for values in zip(*items, strict=True)]
        if None in sizes:
            return None
        fitted.append(tuple(size for size in sizes if size is not None))
    return tuple(fitted)
