"""A partition that is run once more and observed: where each op of the source ends up, and why."""

from __future__ import annotations

from attrs import evolve, field

from shardy_py.api.summary import tensor_bytes
from shardy_py.errors import Diagnostic
from shardy_py.frontends.mlir import import_module, parse_module, print_module, printed_names
from shardy_py.ir.graph.op_names import FUNCTION, MESH, RETURN
from shardy_py.ir.graph.program import Op, Program
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import is_fragment, is_inter_mesh, mesh_of, origins_of
from shardy_py.mpmd.dialect.op_names import SRC_SET, TRANSFER, USE_SET
from shardy_py.mpmd.dialect.origins import MeshSet
from shardy_py.mpmd.dialect.types import require_mesh_tensor
from shardy_py.mpmd.partitioning import MAIN, Partitioning
from shardy_py.mpmd.passes.inference.convert_reduce_ops import InferMeshConvertReduceOpsPass
from shardy_py.mpmd.passes.inference.mesh_sets import get_set, is_meshless
from shardy_py.mpmd.passes.inference.src_sets import InferMeshPopulateSrcSetPass
from shardy_py.mpmd.passes.inference.use_sets import InferMeshPopulateUseSetPass
from shardy_py.mpmd.passes.named.map_named_ops import MapNamedOpsToMpmdOpsPass
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
class SourceOp:
    """An op of the program before its partition.

    Args:
        name: The name of the op.
        location: Its location: that of the source where it has one, else its line in the printed program.
        value: The name of its first result, as MLIR prints the program, or "".
    """

    name: str
    location: str
    value: str

    def __str__(self) -> str:
        where = f" at {self.location}" if self.location else ""
        return f"{self.name}{where}"


@define(eq=False)
class Observation:
    """Placements and reasons of ops in a partition, by their locations in the text, which no two ops share.

    Attributes:
        partitioning: What is run.
        program: The program over several meshes.
        sources: Location to the op of the source.
        computations: Location to the named computation that an op is in, for ops in one.
        used_on: Location to the meshes that need an op without a name, with the reasons.
        available_on: Location to the meshes that have its operands; an op that is not in it can run on each mesh.
        reduced: The locations of ops that became reductions over meshes.
        warnings: The warnings of the passes.
    """

    partitioning: Partitioning
    program: Program
    sources: dict[str, SourceOp]
    computations: dict[str, str] = field(factory=dict)
    used_on: dict[str, MeshSet] = field(factory=dict)
    available_on: dict[str, MeshSet] = field(factory=dict)
    reduced: set[str] = field(factory=set)
    warnings: tuple[Diagnostic, ...] = ()

    @classmethod
    def of(cls, partitioning: Partitioning) -> Observation:
        """Run a partition, and return what it does."""
        # As MLIR prints it without locations, each op has a line of its own.
        text = print_module(parse_module(partitioning.text))
        self = cls(partitioning, Program(), _sources(partitioning, text))
        self.program, warnings = partitioning.run(text=text, after_pass=self._note)
        self.warnings = tuple(self._located(item) for item in warnings)
        return self

    def _located(self, warning: Diagnostic) -> Diagnostic:
        """Return a warning at the location in the source, not in the text that was run."""
        source = self.sources.get(warning.location)
        return evolve(warning, location=source.location if source is not None else "")

    def _note(self, name: str, program: Program) -> None:
        if name == MapNamedOpsToMpmdOpsPass.name:
            for fragment in filter(is_fragment, program.walk()):
                text = " and ".join(map(str, origins_of(fragment)))
                self.computations.update((op.location, text) for op in fragment.walk() if self.source(op) is not None)
        elif name == InferMeshPopulateUseSetPass.name:
            # It runs twice; the second time, the ends of functions have their meshes.
            for op in self._meshless_ops(program):
                _put(self.used_on, op, USE_SET)
                _put(self.available_on, op, SRC_SET)
        elif name == InferMeshPopulateSrcSetPass.name:
            self.reduced = {op.location for op in self._meshless_ops(program)}
        elif name == InferMeshConvertReduceOpsPass.name:
            self.reduced -= {op.location for op in self._meshless_ops(program)}

    def _meshless_ops(self, program: Program) -> list[Op]:
        return [op for op in program.walk() if is_meshless(op) and self.source(op) is not None]

    def source(self, op: Op) -> SourceOp | None:
        """Return the op of the source that an op in a fragment is; None for one that a pass added."""
        source = self.sources.get(op.location) if op.location else None
        # The end of a computation is where its last op is.
        return source if source is not None and source.name == op.name else None

    def transfers(self) -> list[Op]:
        """Return the transfers between meshes or memories, in the order of the program."""
        ops = block_of(self.program.functions[MAIN]).ops
        return [op for op in ops if op.name == TRANSFER and is_inter_mesh(op)]

    def sent_bytes(self, transfer: Op) -> int:
        """Return the bytes of its operand that each device of the mesh holds."""
        type_ = require_mesh_tensor(transfer.operands[0])
        return tensor_bytes(type_.tensor, type_.sharding, self.partitioning.topology.mesh(type_.mesh)) or 0

    def instances(self) -> dict[str, list[str]]:
        """Return location to the meshes of an op, once per fragment that has it."""
        result: dict[str, list[str]] = {}
        for fragment in filter(is_fragment, block_of(self.program.functions[MAIN]).ops):
            for op in fragment.regions[0].block.ops:
                if self.source(op) is not None:
                    result.setdefault(op.location, []).append(mesh_of(fragment))
        return result


def _put(sets: dict[str, MeshSet], op: Op, name: str) -> None:
    value = get_set(op.attributes, name)
    if value is not None:
        sets[op.location] = value


def _sources(partitioning: Partitioning, text: str) -> dict[str, SourceOp]:
    """Return location in a text to the op of the source: both programs have the same ops in the same order."""
    name = partitioning.source_name
    plain, located = (import_module(parse_module(item), name=name) for item in (text, partitioning.text))
    names = printed_names(plain)
    locations = partitioning.locations or tuple(op.location for op in located.walk())
    sources: dict[str, SourceOp] = {}
    for op, location in zip(plain.walk(), locations, strict=True):
        if op.name not in (FUNCTION, MESH, RETURN):
            value = names[op.results[0].id].name if op.results else ""
            sources[op.location] = SourceOp(op.name, location or op.location, value)
    return sources


def reasons_of(meshes: MeshSet, mesh: str) -> str:
    """Return the reasons why a mesh is in a set."""
    names = [_INFERRED_REASONS.get(origin, f'"{origin}"') for origin in meshes.origins(mesh)]
    return " and ".join(names) or "a named computation"
