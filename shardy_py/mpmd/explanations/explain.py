"""The explanation of a program over several meshes: placements of ops, transfers, and what would remove them."""

from __future__ import annotations

from attrs import field

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.mpmd.dialect.origins import MeshSet
from shardy_py.mpmd.explanations.observation import Observation, SourceOp, reasons_of
from shardy_py.mpmd.explanations.removals import TransferRemoval, find_removals
from shardy_py.mpmd.explanations.transfers import TransferExplanation, explain_transfers
from shardy_py.mpmd.partitioning import Partitioning
from shardy_py.values import define, frozen


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
        uses = [f"{reasons_of(self.used_on, mesh)} needs it on {mesh}" for mesh in self.meshes if mesh in self.used_on]
        if uses:
            return " and ".join(uses)
        return "moving its result sends fewer bytes than moving its operands"

    def __str__(self) -> str:
        """Return the placement with its reasons, and what would change it."""
        if not self.meshes:
            combines = "it combines values of several meshes, first on each, then where the result is needed"
            absence = "it was folded, or merged with an equal op, or nothing uses it"
            return f"{self.op} is in no fragment: {combines if self.is_reduction else absence}"
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
        meshes = [f"{mesh} ({reasons_of(self.available_on, mesh)})" for mesh in self.available_on.names]
        return f"its operands can be had without a transfer on {', '.join(meshes)}"


@define(eq=False)
class PipelineExplanation:
    """Reasons for the meshes of ops, and for transfers.

    Attributes:
        placements: The ops of the source that are in fragments, in order.
        transfers: The transfers between meshes, those of all microbatches together.
    """

    placements: tuple[OpPlacement, ...]
    transfers: tuple[TransferExplanation, ...]
    _observation: Observation = field(repr=False)
    _absent: tuple[OpPlacement, ...] = field(repr=False)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings of the passes, such as one of a name with a mesh that nothing has."""
        return self._observation.warnings

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
        return find_removals(self._observation, self.transfer(number).number, limit=limit)

    def __str__(self) -> str:
        """Return the meshes with their ops, and the transfers."""
        lines = []
        for mesh in self._observation.partitioning.topology.names:
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
    transfers = tuple(item for item, _ in explain_transfers(observation))
    return PipelineExplanation(present, transfers, observation, absent)


def _ops(count: int) -> str:
    return "1 op" if count == 1 else f"{count} ops"
