"""Inlining of calls in HLO, as XLA does it before it hands a module to Shardy.

Mirrors XLA's ``call_inliner.cc`` in the pipeline of its partitioner, with the dead code elimination (``hlo_dce.cc``)
that runs at its end where anything was inlined. To inline after the conversion to MLIR would give another order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from shardy_py.jax.like_jit.hlo_module import HloComputation, HloModuleInstruction, HloModuleProto, scope_of, with_scope
from shardy_py.support.identity import identity

_CALL = "call"
_MANUAL = ("xla.sdy.manual_computation_body", "shmap_body")
"""Parts of the names of computations that stay: the bodies of manual computations."""
_OF_STREAMS = ("_xla_stream_annotation", "_xla_compute_type")
_TRANSFERS = ("send", "send-done", "recv", "recv-done", "infeed", "outfeed")
_WITH_EFFECTS = frozenset((*_TRANSFERS, "rng", "rng-get-and-update-state", "parameter", "after-all", "domain"))


def inline_calls(data: bytes) -> bytes:
    """Return a serialized HLO module in which calls are replaced by what they call.

    Calls of manual computations stay, and those that a backend or the program marks.

    Args:
        data: The module, an ``HloModuleProto``.

    Raises:
        ValueError: the bytes are not a module.
    """
    module = HloModuleProto(data)
    inliner = _Inliner(module)
    inliner.visit(module.entry)
    if not inliner.has_inlined:
        return data
    effects = _Effects(module)
    for computation in module.computations:
        _erase_dead(computation, effects)
    return module.encode((item, post_order(item)) for item in _reachable(module))


def post_order(computation: HloComputation) -> list[HloModuleInstruction]:
    """Return instructions with operands before users: from each without users, in their order, operands left to right.

    Mirrors ``HloComputation::MakeInstructionPostOrder``.
    """
    used = {identity(operand) for instruction in computation.instructions for operand in instruction.operands}
    ordered: list[HloModuleInstruction] = []
    is_done: dict[int, bool] = {}
    for root in computation.instructions:
        if identity(root) in used:
            continue
        stack = [root]
        while stack:
            instruction = stack[-1]
            key = identity(instruction)
            if key in is_done:
                stack.pop()
                if not is_done[key]:
                    is_done[key] = True
                    ordered.append(instruction)
                continue
            is_done[key] = False
            stack += [item for item in reversed(instruction.operands) if identity(item) not in is_done]
            stack += [item for item in reversed(instruction.control_predecessors) if identity(item) not in is_done]
    return ordered


class _Inliner:
    """Inlines the calls of one module, callees first."""

    def __init__(self, module: HloModuleProto) -> None:
        self._module = module
        self._done: set[int] = set()
        self._numbers = count()
        self._scopes: dict[tuple[bytes, bytes], bytes] = {}
        self.has_inlined = False

    def visit(self, computation: HloComputation) -> None:
        """Inline the calls of a computation, once those of all that it calls are inlined."""
        # A stack instead of recursion: callees may be nested more deeply than Python's own stack.
        stack: list[tuple[HloComputation, bool]] = [(computation, False)]
        while stack:
            current, is_ready = stack.pop()
            if is_ready:
                self._inline(current)
            elif current.number not in self._done:
                self._done.add(current.number)
                stack.append((current, True))
                called = [id_ for instruction in current.instructions for id_ in instruction.called]
                stack += [(self._module.by_id[id_], False) for id_ in reversed(called)]

    def _inline(self, computation: HloComputation) -> None:
        calls = [item for item in computation.instructions if item.opcode == _CALL and self._is_inlineable(item)]
        if not calls:
            return
        self.has_inlined = computation.is_changed = True
        call_ids = {identity(call) for call in calls}
        results: dict[int, HloModuleInstruction] = {}
        for call in post_order(computation):
            if identity(call) in call_ids:
                results[identity(call)] = self._clone_callee(call, computation)
        computation.instructions = [item for item in computation.instructions if identity(item) not in call_ids]
        for instruction in computation.instructions:
            instruction.operands = [_resolve(operand, results) for operand in instruction.operands]
            if instruction.control_predecessors:
                instruction.control_predecessors = [
                    _resolve(item, results) for item in instruction.control_predecessors
                ]
        computation.root = _resolve(computation.root, results)

    def _clone_callee(self, call: HloModuleInstruction, caller: HloComputation) -> HloModuleInstruction:
        """Append copies of what a call calls to the caller, and return that of the root."""
        callee = self._module.by_id[call.called[0]]
        scope = call.scope
        copies: dict[int, HloModuleInstruction] = {}
        for instruction in post_order(callee):
            if instruction.opcode == "parameter":
                copies[identity(instruction)] = call.operands[instruction.parameter_number]
                continue
            name = instruction.name.partition(b".inlined")[0] + b".inlined%d" % next(self._numbers)
            copy = instruction.clone(name, [copies[identity(operand)] for operand in instruction.operands])
            if scope and copy.metadata:
                copy.metadata = self._scoped(copy.metadata, scope)
            copies[identity(instruction)] = copy
            caller.instructions.append(copy)
        return copies[identity(callee.root)]

    def _scoped(self, metadata: bytes, scope: bytes) -> bytes:
        """Return metadata with the name stack of a call in front of its own."""
        key = metadata, scope
        if key not in self._scopes:
            inner_scope = scope_of(metadata)
            self._scopes[key] = with_scope(metadata, scope + b"/" + inner_scope) if inner_scope else metadata
        return self._scopes[key]

    def _is_inlineable(self, call: HloModuleInstruction) -> bool:
        if call.backend_config:
            return False
        name = self._module.by_id[call.called[0]].name
        if any(part in name for part in _MANUAL):
            return False
        if not call.frontend_attributes:
            return True
        return call.attribute("inlineable") != "false" and not any(map(call.attribute, _OF_STREAMS))


def _resolve(instruction: HloModuleInstruction, results: dict[int, HloModuleInstruction]) -> HloModuleInstruction:
    """Return what takes the place of a call, itself perhaps a call that was replaced."""
    while identity(instruction) in results:
        instruction = results[identity(instruction)]
    return instruction


class _Effects:
    """Look-up of the instructions that have side effects, alone or through what they call."""

    def __init__(self, module: HloModuleProto) -> None:
        self._module = module
        self._by_computation: dict[int, bool] = {}

    def has_side_effect(self, instruction: HloModuleInstruction) -> bool:
        """Return whether an instruction must stay although nothing uses it."""
        if instruction.opcode in _WITH_EFFECTS or instruction.has_side_effect or instruction.channel_id:
            return True
        return any(map(self._in_computation, instruction.called))

    def _in_computation(self, id_: int) -> bool:
        if id_ not in self._by_computation:
            instructions = self._module.by_id[id_].instructions
            self._by_computation[id_] = any(
                item.opcode != "parameter" and self.has_side_effect(item) for item in instructions
            )
        return self._by_computation[id_]


def _erase_dead(computation: HloComputation, effects: _Effects) -> None:
    """Erase the instructions of a computation that nothing uses, and then those that only they used."""
    while True:
        used = {identity(operand) for item in computation.instructions for operand in item.operands}
        used |= {identity(other) for item in computation.instructions for other in item.control_predecessors}
        used.add(identity(computation.root))
        alive = [item for item in computation.instructions if identity(item) in used or effects.has_side_effect(item)]
        if len(alive) == len(computation.instructions):
            return
        computation.instructions, computation.is_changed = alive, True


def _reachable(module: HloModuleProto) -> Sequence[HloComputation]:
    """Return the computations that the entry needs, in the order of the module: each after those that it calls."""
    needed: set[int] = set()
    waiting: list[int] = [module.entry.number]
    while waiting:
        id_ = waiting.pop()
        if id_ not in needed:
            needed.add(id_)
            waiting += _called(module.by_id[id_].instructions)
    return [item for item in module.computations if item.number in needed]


def _called(instructions: Iterable[HloModuleInstruction]) -> list[int]:
    return [id_ for instruction in instructions for id_ in instruction.called]
