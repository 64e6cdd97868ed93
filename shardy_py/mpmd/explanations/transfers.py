"""Transfers between meshes, each with what makes its value, what uses it there, and why."""

from __future__ import annotations

from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Op, Value
from shardy_py.mpmd.dialect.fragments import is_fragment, mesh_of, terminator_of
from shardy_py.mpmd.dialect.op_names import TRANSFER
from shardy_py.mpmd.dialect.origins import MeshSet
from shardy_py.mpmd.dialect.types import MeshTensor, require_mesh_tensor
from shardy_py.mpmd.explanations.observation import Observation, reasons_of
from shardy_py.support.texts import format_bytes
from shardy_py.values import frozen


@frozen
class TransferExplanation:
    """Equal transfers of one value, one for each microbatch, and the reasons.

    Args:
        number: The number by which it is asked for.
        source: The type before.
        target: The type behind.
        count: The number of transfers.
        bytes_per_device: The bytes that each device sends in one of them.
        made_by: What makes the value.
        used_by: What uses it there.
    """

    number: int
    source: MeshTensor
    target: MeshTensor
    count: int
    bytes_per_device: int
    made_by: str
    used_by: tuple[str, ...]

    @property
    def line(self) -> str:
        """The transfer in one line."""
        often = f"{self.count} times " if self.count > 1 else ""
        ends = f"{_end(self.source)} to {_end(self.target)}"
        return f"{self.number}: {ends}, {often}{format_bytes(self.bytes_per_device)} per device: {self.source.tensor}"

    def __str__(self) -> str:
        """Return the transfer with its reasons."""
        lines = [f"transfer {self.line}", f"  made on {_end(self.source)} by {self.made_by}"]
        return "\n".join([*lines, *(f"  used on {_end(self.target)} by {use}" for use in self.used_by)])


def explain_transfers(observation: Observation) -> tuple[tuple[TransferExplanation, tuple[Op, ...]], ...]:
    """Return the transfers of a program with their ops; those that differ by their microbatch are one."""
    groups: dict[tuple[str, ...], list[Op]] = {}
    for op in observation.transfers():
        types = op.operands[0].type.text, op.results[0].type.text
        uses = _users(op.results[0], observation)
        groups.setdefault((*types, _maker(op.operands[0], observation), *uses), []).append(op)
    return tuple(
        (
            TransferExplanation(
                number,
                require_mesh_tensor(ops[0].operands[0]),
                require_mesh_tensor(ops[0].results[0]),
                len(ops),
                observation.sent_bytes(ops[0]),
                made_by,
                tuple(used_by),
            ),
            tuple(ops),
        )
        for number, ((_, _, made_by, *used_by), ops) in enumerate(groups.items())
    )


def _maker(value: Value, observation: Observation) -> str:
    op = value.defining_op
    if op is None:
        return f"argument {value.index}"
    if op.name == TRANSFER:
        return f"a transfer from {_end(require_mesh_tensor(op.operands[0]))}"
    if not is_fragment(op):
        return op.name
    returned = terminator_of(op).operands[value.index]
    if returned.defining_op is None:
        return f"a fragment of {mesh_of(op)} that hands on what it gets"
    return _named(returned.defining_op, observation, op)


def _users(value: Value, observation: Observation) -> list[str]:
    users: dict[str, None] = {}
    for user, number in value.uses:
        if user.name == TRANSFER:
            users[f"a transfer to {_end(require_mesh_tensor(user.results[0]))}"] = None
        elif user.name == RETURN:
            users[f"result {number}"] = None
        elif is_fragment(user):
            argument = user.regions[0].block.arguments[number]
            inner = [op for op, _ in argument.uses if op is not terminator_of(user)]
            users |= dict.fromkeys(_named(op, observation, user) for op in inner)
            if len(inner) < len(argument.uses):
                users[f"a fragment of {mesh_of(user)} that hands it on"] = None
    return sorted(users)


def _named(op: Op, observation: Observation, fragment: Op) -> str:
    """Return an op with the reason why it is on its mesh."""
    source = observation.source(_in_block(op, fragment))
    if source is None:
        return f"{op.name}, part of a reduction over meshes" if observation.reduced else op.name
    location = _in_block(op, fragment).location
    computation = observation.computations.get(location)
    if computation:
        return f"{source}, part of {computation}"
    used_on = observation.used_on.get(location, MeshSet())
    mesh = mesh_of(fragment)
    if mesh in used_on:
        return f"{source}, which {reasons_of(used_on, mesh)} needs there"
    return f"{source}, which runs there as its result has fewer bytes than its operands"


def _in_block(op: Op, fragment: Op) -> Op:
    """Return the op of a fragment's block that an op is, or is inside of."""
    block = fragment.regions[0].block
    while op.parent is not block and op.parent_op is not None:
        op = op.parent_op
    return op


def _end(type_: MeshTensor) -> str:
    return type_.mesh + (f" ({type_.memory_kind})" if type_.memory_kind else "")
