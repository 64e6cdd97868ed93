"""The explanation of a program over several meshes: placements of ops, transfers, and what would remove them."""

from __future__ import annotations

from attrs import field

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Op, Value
from shardy_py.mpmd.dialect.fragments import is_fragment, mesh_of, terminator_of
from shardy_py.mpmd.dialect.op_names import TRANSFER
from shardy_py.mpmd.dialect.origins import MeshSet
from shardy_py.mpmd.dialect.types import MeshTensor, require_mesh_tensor
from shardy_py.mpmd.explanations.observation import Observation, SourceOp, transfer_bytes
from shardy_py.mpmd.explanations.removals import TransferRemoval, find_removals
from shardy_py.mpmd.partitioning import Partitioning
from shardy_py.support.texts import format_bytes
from shardy_py.values import define, frozen

_INFERRED_REASONS = {
    "inferred_in": "an argument of the program",
    "inferred_out": "a result of the program",
    "user_in": "an argument that is assigned to the mesh",
    "user_out": "a result that is assigned to the mesh",
    "inferred_unused": "nothing else",
    "broadcast": "a broadcast over meshes",
    "reduce": "a sum over meshes",
    "transfer": "a transfer",
}
"""Reasons in use sets and src sets other than names of computations and tensors."""


@frozen
class OpPlacement:
    """The meshes of an op, and the reason.

    Args:
        op: The op of the source.
        meshes: The meshes that run it, in order of their names.
        count: How often it runs in all: for each microbatch, and on each of the meshes.
        computation: The named computation that it is in, such as ``"f"`` or ``"f"(1)`` for its gradient, or "".
        used_on: For an op without a name, the meshes that need its result, with the reasons.
        available_on: For such an op, the meshes that have its operands; None for any mesh.
        is_reduction: Whether it combines values of several meshes, and is in no fragment as it is.
    """

    op: SourceOp
    meshes: tuple[str, ...]
    count: int
    computation: str
    used_on: MeshSet
    available_on: MeshSet | None
    is_reduction: bool

    @property
    def reason(self) -> str:
        """The reason in a few words."""
        if self.computation:
            return f"it is part of {self.computation}"
        uses = [f"{_because(self.used_on, mesh)} needs it on {mesh}" for mesh in self.meshes if mesh in self.used_on]
        if uses:
            return " and ".join(uses)
        return "moving its result sends fewer bytes than moving its operands"

    def __str__(self) -> str:
        """Return the placement with its reasons, and what would change it."""
        if not self.meshes:
            combines = "it combines values of several meshes, first on each, then where the result is needed"
            gone = "it was folded, or merged with an equal op, or nothing uses it"
            return f"{self.op} is in no fragment: {combines if self.is_reduction else gone}"
        often = f", {self.count} times in all" if self.count > 1 else ""
        head = f"{self.op} runs on {' and '.join(self.meshes)}{often}"
        if self.computation:
            advice = "to move it: assign this name to another mesh, or take the op out of it"
            return "\n  ".join([head, self.reason, advice])
        no_name = "no name puts it on a mesh: it runs where its result is needed, or where that sends fewer bytes"
        advice = "to move it: put it into a named computation of another mesh"
        return "\n  ".join([head, no_name, self.reason, self._operands(), advice])

    def _operands(self) -> str:
        if self.available_on is None:
            return "its operands can be had on every mesh"
        if not self.available_on:
            return "no mesh has all of its operands without a transfer"
        meshes = [f"{mesh} ({_because(self.available_on, mesh)})" for mesh in self.available_on.names]
        return f"its operands can be had without a transfer on {', '.join(meshes)}"


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


def _ops(count: int) -> str:
    return "1 op" if count == 1 else f"{count} ops"


def _end(type_: MeshTensor) -> str:
    return type_.mesh + (f" ({type_.memory_kind})" if type_.memory_kind else "")


def _because(meshes: MeshSet, mesh: str) -> str:
    """Return the reasons why a mesh is in a set."""
    names = [_INFERRED_REASONS.get(origin, f'"{origin}"') for origin in meshes.origins(mesh)]
    return " and ".join(names) or "a named computation"


@define(eq=False)
class PipelineExplanation:
    """Reasons for the meshes of ops, and for transfers.

    Attributes:
        placements: The ops of the source that are in fragments, in order.
        transfers: The transfers between meshes, those of all microbatches together.
    """

    placements: tuple[OpPlacement, ...]
    transfers: tuple[TransferExplanation, ...]
    _partitioning: Partitioning = field(repr=False)
    _absent: tuple[OpPlacement, ...] = field(repr=False)

    def op(self, name: str) -> tuple[OpPlacement, ...]:
        """Return the placements of some ops.

        Args:
            name: The name of an op (``stablehlo.tanh`` or ``tanh``), of a result as MLIR prints the program (``%5``),
                or a part of a location (``model.py:12``, ``encoder/layer.3``).

        Raises:
            OptionError: there is no such op.
        """
        every = (*self.placements, *self._absent)
        exact = [item for item in every if name in (item.op.name, item.op.name.partition(".")[2], item.op.value)]
        placements = exact or [item for item in every if name in item.op.location]
        if not placements:
            message = f"no op of the program has the name, the result or the location {name!r}"
            hint = "give stablehlo.tanh, %5, or a part of a location such as model.py:12"
            raise OptionError(Diagnostic("unknown-op", message, hint=hint))
        return tuple(placements)

    def transfer(self, number: int) -> TransferExplanation:
        """Return a transfer by its number.

        Raises:
            OptionError: there is none.
        """
        if not 0 <= number < len(self.transfers):
            message = f"there is no transfer {number}"
            known = f"there are 0 to {len(self.transfers) - 1}" if self.transfers else "the program has none"
            raise OptionError(Diagnostic("unknown-transfer", message, hint=known))
        return self.transfers[number]

    def removals(self, number: int, *, limit: int = 8) -> tuple[TransferRemoval, ...]:
        """Return assignments that would remove a transfer, those that leave the fewest bytes first.

        Each is tried: the program is partitioned again.

        Args:
            number: The number of the transfer.
            limit: The largest number of assignments to try.

        Raises:
            OptionError: there is no such transfer.
        """
        return find_removals(self._partitioning, self.transfer(number).number, limit=limit)

    def __str__(self) -> str:
        """Return the meshes with their ops, and the transfers."""
        lines = []
        for mesh in self._partitioning.topology.names:
            items = [item for item in self.placements if mesh in item.meshes]
            inferred = [item for item in items if not item.computation]
            names = ", ".join(dict.fromkeys(item.computation for item in items if item.computation))
            parts = [f"{_ops(len(items) - len(inferred))} of {names}"] if names else []
            parts += [f"{_ops(len(inferred))} without a name"] if inferred else []
            lines.append(f"{mesh}: {', '.join(parts) or 'no ops'}")
            lines += [f"  {item.op}: {item.reason}" for item in inferred]
        lines.append("transfers:" if self.transfers else "no transfers")
        lines += [f"  {item.line}" for item in self.transfers]
        return "\n".join(lines)


def explain_pipeline(partitioning: Partitioning) -> PipelineExplanation:
    """Return the explanation of the program that a partition makes."""
    observation = Observation.of(partitioning)
    instances = observation.instances()
    placements = [
        OpPlacement(
            source,
            tuple(sorted(set(instances.get(location, ())))),
            len(instances.get(location, ())),
            observation.computations.get(location, ""),
            observation.used_on.get(location, MeshSet()),
            observation.available_on.get(location),
            location in observation.reduced,
        )
        for location, source in observation.sources.items()
    ]
    present = tuple(item for item in placements if item.meshes)
    absent = tuple(item for item in placements if not item.meshes)
    return PipelineExplanation(present, explain_transfers(observation, partitioning), partitioning, absent)


def explain_transfers(observation: Observation, partitioning: Partitioning) -> tuple[TransferExplanation, ...]:
    """Return the transfers of a program; those that differ by their microbatch are one."""
    groups: dict[tuple[str, ...], list[Op]] = {}
    for op in observation.transfers():
        types = op.operands[0].type.text, op.results[0].type.text
        uses = _users(op.results[0], observation)
        groups.setdefault((*types, _maker(op.operands[0], observation), *uses), []).append(op)
    return tuple(
        TransferExplanation(
            number,
            require_mesh_tensor(ops[0].operands[0]),
            require_mesh_tensor(ops[0].results[0]),
            len(ops),
            transfer_bytes(ops[0].operands[0], partitioning),
            made_by,
            tuple(used_by),
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
        return f"{source}, which {_because(used_on, mesh)} needs there"
    return f"{source}, which runs there as its result has fewer bytes than its operands"


def _in_block(op: Op, fragment: Op) -> Op:
    """Return the op of a fragment's block that an op is, or is inside of."""
    block = fragment.regions[0].block
    while op.parent is not block and op.parent_op is not None:
        op = op.parent_op
    return op
