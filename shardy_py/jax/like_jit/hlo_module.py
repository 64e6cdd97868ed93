"""HLO modules as XLA serializes them (``HloModuleProto``): as much of them as moving instructions needs.

The numbers of fields are those of ``xla/service/hlo.proto``. Everything that is not read here stays as it is, byte for
byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shardy_py.jax.like_jit.wire import (
    read_fields,
    read_integers,
    write_bytes,
    write_integer,
    write_integers,
)

_MODULE_COMPUTATIONS, _MODULE_ENTRY_ID = 3, 6
_COMPUTATION_NAME, _COMPUTATION_INSTRUCTIONS, _COMPUTATION_ID, _COMPUTATION_ROOT_ID = 1, 2, 5, 6
_NAME, _OPCODE, _METADATA, _PARAMETER_NUMBER, _CHANNEL_ID = 1, 2, 7, 9, 26
_ID, _OPERANDS, _CONTROL_PREDECESSORS, _CALLED = 35, 36, 37, 38
_BACKEND_CONFIG, _HAS_SIDE_EFFECT, _FRONTEND_ATTRIBUTES = 43, 65, 68
_WRITTEN_ANEW = frozenset((_NAME, _METADATA, _ID, _OPERANDS, _CONTROL_PREDECESSORS, _CALLED))
_SCOPE = 2
"""The field of an instruction's metadata with ``op_name``, JAX's name stack."""


class HloModuleInstruction:
    """An instruction of HLO.

    Attributes:
        name: Its name, unique in the module.
        opcode: Its opcode.
        number: Its number, unique in the module.
        operands: The instructions that it uses.
        control_predecessors: The instructions that run before it.
        called: The numbers of the computations that it calls.
        metadata: Its metadata: the name stack and the location.
        rest: All other fields.
        parameter_number: The number of a parameter.
        channel_id: The channel of a collective; 0 for none.
        has_side_effect: Whether a custom call has a side effect.
        backend_config: What only the backend reads.
        frontend_attributes: The attributes that all compilers hand on, encoded.
    """

    __slots__ = (
        "backend_config",
        "called",
        "channel_id",
        "control_predecessors",
        "frontend_attributes",
        "has_side_effect",
        "metadata",
        "name",
        "number",
        "opcode",
        "operands",
        "parameter_number",
        "rest",
    )

    name: bytes
    opcode: str
    number: int
    operands: list[HloModuleInstruction]
    control_predecessors: list[HloModuleInstruction]
    called: list[int]
    metadata: bytes | None
    rest: bytes
    parameter_number: int
    channel_id: int
    has_side_effect: bool
    backend_config: bytes
    frontend_attributes: bytes

    def clone(self, name: bytes, operands: list[HloModuleInstruction]) -> HloModuleInstruction:
        """Return a copy with another name and other operands, which no instruction has to run before."""
        copy = HloModuleInstruction.__new__(HloModuleInstruction)
        for slot in HloModuleInstruction.__slots__:
            setattr(copy, slot, getattr(self, slot))
        copy.name, copy.operands, copy.control_predecessors = name, operands, []
        return copy

    def attribute(self, name: str) -> str | None:
        """Return the frontend attribute of a name, or None."""
        key = name.encode()
        for _, entry, _, _ in read_fields(self.frontend_attributes):
            pair = {number: value for number, value, _, _ in read_fields(entry)}  # type: ignore[arg-type]
            if pair.get(1) == key:
                return bytes(pair.get(2, b"")).decode()
        return None

    @property
    def scope(self) -> bytes:
        """The name stack, or nothing."""
        return scope_of(self.metadata)


class HloComputation:
    """A computation: a list of instructions, one of which is the root.

    Attributes:
        number: Its number.
        name: Its name.
        instructions: The instructions in their order.
        root: The instruction that gives its result.
        is_changed: Whether instructions came or went.
    """

    __slots__ = ("_data", "_rest", "instructions", "is_changed", "name", "number", "root")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.number, self.name, self.is_changed = 0, "", False
        self.instructions: list[HloModuleInstruction] = []
        rest, root_id, operand_ids = [], 0, []
        for number, value, start, end in read_fields(data):
            if number == _COMPUTATION_INSTRUCTIONS:
                instruction, ids = _read_instruction(value)
                self.instructions.append(instruction)
                operand_ids.append(ids)
                continue
            if number == _COMPUTATION_ROOT_ID:
                root_id = int(value)
                continue
            if number == _COMPUTATION_ID:
                self.number = int(value)
            elif number == _COMPUTATION_NAME:
                self.name = bytes(value).decode()
            rest.append(data[start:end])
        self._rest = b"".join(rest)
        by_id = {instruction.number: instruction for instruction in self.instructions}
        for instruction, (operands, predecessors) in zip(self.instructions, operand_ids, strict=True):
            instruction.operands = [by_id[id_] for id_ in operands]
            instruction.control_predecessors = [by_id[id_] for id_ in predecessors]
        self.root = by_id[root_id]

    def encode(self, ordered: Sequence[HloModuleInstruction], first_id: int) -> bytes:
        """Return the computation as bytes, with its instructions in a given order.

        XLA puts instructions into the order of their numbers, so they are numbered anew.
        """
        if not self.is_changed:
            return self._data
        for id_, instruction in enumerate(ordered, start=first_id):
            instruction.number = id_
        parts = [self._rest, write_integer(_COMPUTATION_ROOT_ID, self.root.number)]
        parts += [write_bytes(_COMPUTATION_INSTRUCTIONS, _write_instruction(item)) for item in ordered]
        return b"".join(parts)


class HloModuleProto:
    """A module: its computations, each after those that it calls.

    Attributes:
        computations: The computations.
        by_id: The same by their numbers.
        entry: The one that a run begins with.
    """

    def __init__(self, data: bytes) -> None:
        self._rest: list[bytes] = []
        self.computations: list[HloComputation] = []
        entry_id = 0
        for number, value, start, end in read_fields(data):
            if number == _MODULE_COMPUTATIONS:
                self.computations.append(HloComputation(value))  # type: ignore[arg-type]
                continue
            if number == _MODULE_ENTRY_ID:
                entry_id = int(value)
            self._rest.append(data[start:end])
        self.by_id: Mapping[int, HloComputation] = {item.number: item for item in self.computations}
        self.entry = self.by_id[entry_id]

    def encode(self, computations: Iterable[tuple[HloComputation, Sequence[HloModuleInstruction]]]) -> bytes:
        """Return the module as bytes, with some of its computations and the order of their instructions."""
        parts = list(self._rest)
        # In recent versions of XLA the upper half of an instruction's number is that of its computation.
        is_composed = all(item.root.number >> 32 == item.number for item in self.computations)
        free = 1 + max(instruction.number for item in self.computations for instruction in item.instructions)
        for computation, ordered in computations:
            first_id = (computation.number << 32) + 1 if is_composed else free
            free += len(ordered)
            parts.append(write_bytes(_MODULE_COMPUTATIONS, computation.encode(ordered, first_id)))
        return b"".join(parts)


def scope_of(metadata: bytes | None) -> bytes:
    """Return the name stack in the metadata of an instruction, or nothing."""
    for number, value, _, _ in read_fields(metadata or b""):
        if number == _SCOPE:
            return bytes(value)
    return b""


def with_scope(metadata: bytes, scope: bytes) -> bytes:
    """Return the metadata of an instruction with another name stack."""
    rest = [metadata[start:end] for number, _, start, end in read_fields(metadata) if number != _SCOPE]
    return write_bytes(_SCOPE, scope) + b"".join(rest)


def _read_instruction(data: Any) -> tuple[HloModuleInstruction, tuple[list[int], list[int]]]:
    """Return an instruction, and the numbers of its operands and of its control predecessors."""
    instruction = HloModuleInstruction.__new__(HloModuleInstruction)
    # Fields with the value zero are not written.
    instruction.name, instruction.opcode, instruction.number = b"", "", 0
    instruction.metadata, instruction.called, instruction.parameter_number = None, [], 0
    instruction.channel_id, instruction.has_side_effect, instruction.backend_config, instruction.frontend_attributes = (
        0,
        False,
        b"",
        b"",
    )
    operands: list[int] = []
    predecessors: list[int] = []
    rest: list[bytes] = []
    begin = last = 0
    value: Any
    for number, value, start, end in read_fields(data):
        if number in _WRITTEN_ANEW:
            if begin < start:
                rest.append(data[begin:start])
            begin = end
            if number == _NAME:
                instruction.name = value
            elif number == _METADATA:
                instruction.metadata = value
            elif number == _ID:
                instruction.number = value
            elif number == _OPERANDS:
                operands += read_integers(value)
            elif number == _CONTROL_PREDECESSORS:
                predecessors += read_integers(value)
            else:
                instruction.called += read_integers(value)
        elif number == _OPCODE:
            instruction.opcode = value.decode()
        elif number == _PARAMETER_NUMBER:
            instruction.parameter_number = value
        elif number == _CHANNEL_ID:
            instruction.channel_id = value
        elif number == _HAS_SIDE_EFFECT:
            instruction.has_side_effect = bool(value)
        elif number == _BACKEND_CONFIG:
            instruction.backend_config = value
        elif number == _FRONTEND_ATTRIBUTES:
            instruction.frontend_attributes = value
        last = end
    if begin < last:
        rest.append(data[begin:last])
    instruction.rest = b"".join(rest)
    return instruction, (operands, predecessors)


def _write_instruction(instruction: HloModuleInstruction) -> bytes:
    metadata = instruction.metadata
    return b"".join(
        (
            write_bytes(_NAME, instruction.name),
            b"" if metadata is None else write_bytes(_METADATA, metadata),
            write_integer(_ID, instruction.number),
            write_integers(_OPERANDS, [operand.number for operand in instruction.operands]),
            write_integers(_CONTROL_PREDECESSORS, [item.number for item in instruction.control_predecessors]),
            write_integers(_CALLED, instruction.called),
            instruction.rest,
        )
    )
