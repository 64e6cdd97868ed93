"""Updates of an optimizer: which ops compute the next state of which parameter, and which op gives its gradient.

A parameter and what an optimizer keeps for it are arguments and results of one type. The elementwise ops between them
are its update; what is not elementwise and feeds them computes the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, takewhile

from attrs import field

from shardy_py.explain.explore.scopes import parse_scope
from shardy_py.explain.explore.value_paths import Path, is_layout_op, parse_path, source_of
from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.graph.walk import entry_block
from shardy_py.ir.interfaces.ops import Elementwise
from shardy_py.plugins import Registry
from shardy_py.values import define, frozen

OPTIMIZER = "optimizer"
"""The layer of the updates of parameters."""


@frozen
class Updates:
    """The updates of the parameters of a program.

    Args:
        parameters: Op id to the path of the parameter that the op updates; () for several.
        gradients: Op id to the path of the parameter whose gradient the op computes.
    """

    parameters: Mapping[int, Path]
    gradients: Mapping[int, Path]


def find_updates(program: Program, main: Op, registry: Registry, name: Callable[[Value], str]) -> Updates:
    """Return the updates in the main function.

    Args:
        program: The program, finished.
        main: The main function.
        registry: The definitions of ops.
        name: Gives the name of an argument.
    """
    block = entry_block(main)
    if block is None or block.last is None or block.last.name != RETURN:
        return Updates({}, {})
    search = _Search(registry)
    for result in block.last.operands:
        if static_shape(result.type):
            search.walk_back(result)
    parameters: dict[int, Path] = {}
    gradients: dict[int, Path] = {}
    for component in search.components():
        path = component.path(name)
        if path:
            parameters |= dict.fromkeys(component.ops, path)
            gradients |= dict.fromkeys(component.producers, path)
    for op in search.shared:
        paths = {parameters.get(user) for user in _users(op)}
        shared = {path for path in paths if path is not None}
        if shared and len(shared) == len(paths):
            parameters[op.id] = shared.pop() if len(shared) == 1 else ()
    for op in reversed(list(block.ops)):
        # Numbers that only updates take, such as the count of steps, belong to them.
        users = _users(op) - {block.last.id}
        is_scalar = all(static_shape(value.type) == () for value in op.results)
        if is_scalar and op.id not in parameters and users and users <= parameters.keys():
            parameters[op.id] = ()
    return Updates(parameters, gradients)


def _users(op: Op) -> set[int]:
    return {user.id for value in op.results for user, _ in value.uses}


@frozen(eq=False)
class _Component:
    """Elementwise ops that hang together, with what comes into them and goes out.

    Args:
        ops: The ids of the ops.
        arguments: The arguments of the main function that come in.
        producers: The ids of the ops behind what else comes in.
        result_count: The number of results that go out.
    """

    ops: Sequence[int]
    arguments: Sequence[Value]
    producers: Sequence[int]
    result_count: int

    def path(self, name: Callable[[Value], str]) -> Path:
        """Return the path of the parameter: the steps that the names of its arguments end with alike; () for none."""
        if not self.ops or not self.arguments or not self.result_count:
            return ()
        paths = [parse_path(name(value)) for value in self.arguments]
        if any(paths):
            return _shared_end(paths)
        is_state = len(self.arguments) > 1 and self.result_count == len(self.arguments)
        return (name(self.arguments[0]),) if is_state else ()


def _shared_end(paths: Sequence[Path]) -> Path:
    """Return the steps that paths end with alike; () where the steps before them say more than the name of a tree.

    ``p['layers'][3]['up']`` and ``m['layers'][3]['up']`` share ``layers 3 up``; those of two layers share nothing that
    names a parameter.
    """
    shortest = min(paths, key=len)
    if len(paths) == 1:
        return shortest[1:]
    steps = takewhile(lambda step: len(set(step)) == 1, zip(*(path[::-1] for path in paths), strict=False))
    alike = tuple(step[0] for step in steps)[::-1]
    head = shortest[: len(shortest) - len(alike)]
    return alike if head and not any(step.isdigit() for step in head) else ()


@define(eq=False)
class _Search:
    """Search for components, back from results.

    Attributes:
        registry: The definitions of ops.
        shared: Ops without tensors as operands, such as constants, which belong to their users.
    """

    registry: Registry
    shared: list[Op] = field(factory=list)
    _ops: dict[int, Op] = field(factory=dict)
    _above: dict[int, int] = field(factory=dict)
    _results: list[Value] = field(factory=list)

    def walk_back(self, result: Value) -> None:
        """Visit the elementwise ops behind a result that have its shape."""
        self._results.append(result)
        shape = static_shape(result.type)
        pending = [result.defining_op]
        while pending:
            op = pending.pop()
            if op is None or op.id in self._ops or not self._is_step(op, shape):
                continue
            self._ops[op.id] = op
            if _tensors(op.operands):
                pending.extend(value.defining_op for value in _tensors(op.operands))
            else:
                self.shared.append(op)

    def _is_step(self, op: Op, shape: Sequence[int | None] | None) -> bool:
        if parse_scope(op.scope).phase or any(static_shape(value.type) != shape for value in op.results):
            return False
        return is_layout_op(op.name) or self.registry.has_trait(op, Elementwise) or not _tensors(op.operands)

    def components(self) -> Iterable[_Component]:
        """Return the components, each with its ops in order of ids."""
        steps = {id_: op for id_, op in self._ops.items() if _tensors(op.operands)}
        for op in steps.values():
            makers = (value.defining_op for value in op.operands)
            joined = [op.id, *(maker.id for maker in makers if maker is not None and maker.id in steps)]
            for first, second in pairwise(joined):
                self._join(first, second)
        groups: dict[int, list[Op]] = {}
        for op in steps.values():
            groups.setdefault(self._top(op.id), []).append(op)
        ends = {result.defining_op.id for result in self._results if result.defining_op is not None}
        for ops in groups.values():
            yield _component(ops, ends)

    def _top(self, id_: int) -> int:
        while (above := self._above.get(id_, id_)) != id_:
            # Halving the way keeps the search short in long chains of ops.
            id_ = self._above[id_] = self._above.get(above, above)
        return id_

    def _join(self, first: int, second: int) -> None:
        self._above[self._top(first)] = self._top(second)


def _component(ops: Sequence[Op], ends: set[int]) -> _Component:
    inside = {op.id for op in ops}
    arguments: dict[int, Value] = {}
    producers: dict[int, None] = {}
    for op in ops:
        for operand in _tensors(op.operands):
            source = source_of(operand)
            producer = source.defining_op
            if source.is_block_argument:
                arguments[source.id] = source
            elif producer is not None and producer.id not in inside and _tensors(producer.operands):
                producers[producer.id] = None
    return _Component(sorted(inside), list(arguments.values()), list(producers), len(inside & ends))


def _tensors(values: Iterable[Value]) -> list[Value]:
    """Return the values that are not scalars."""
    return [value for value in values if static_shape(value.type) != ()]
