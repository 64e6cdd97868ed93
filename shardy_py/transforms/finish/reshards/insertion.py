"""Inserting reshards and collectives, with their shardings in the table of the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.op_names import ALL_REDUCE, RESHARD
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.shardings import mesh_of
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.combiner import reduction_op_text
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import Axes
from shardy_py.sharding.tensor import ReductionOp, TensorSharding
from shardy_py.transforms.finish.reshards.sharding_carriers import CarrierSurvey
from shardy_py.values import define


@define
class InsertionPoint:
    """A place in a block: behind ``anchor``, or at the start where that is None. Each op inserted moves it on."""

    block: Block
    anchor: Op | None

    @classmethod
    def before(cls, op: Op) -> InsertionPoint:
        """Return the place directly before an op."""
        return cls(_block_of(op), op.prev)

    @classmethod
    def after(cls, op: Op) -> InsertionPoint:
        """Return the place directly after an op."""
        return cls(_block_of(op), op)

    @classmethod
    def after_value(cls, value: Value) -> InsertionPoint:
        """Return the place where a value has just become available."""
        return cls(value.owner, None) if isinstance(value.owner, Block) else cls.after(value.owner)

    def insert(self, op: Op) -> None:
        """Insert an op here."""
        self.block.insert_after(self.anchor, op)
        self.anchor = op


def _block_of(op: Op) -> Block:
    if op.parent is None:
        raise ValueError(f"{op!r} is in no block")
    return op.parent


@define(eq=False)
class Resharder:
    """A program being resharded: look-ups of shardings and meshes, and the insertion of ops.

    Attributes:
        program: The program.
        meshes: Its meshes.
        functions: Its functions.
        survey: Where its shardings are held.
        opened: The ids of the ops all of whose results have got shardings here.
    """

    program: Program
    meshes: Mapping[str, Mesh]
    functions: Mapping[str, Op]
    survey: CarrierSurvey
    opened: set[int] = field(factory=set)

    @classmethod
    def of(cls, program: Program, semantics: OpSemantics) -> Resharder:
        """Return the resharder of a program."""
        return cls(program, program.meshes, program.functions, CarrierSurvey.of(program, semantics))

    def sharding(self, value: Value) -> TensorSharding | None:
        """Return the sharding of a value, wherever it is held."""
        return self.program.shardings.get(self.survey.carriers.get(value.id, value.id))

    def before_barriers(self, value: Value) -> Value:
        """Return the value before all propagation barriers."""
        barriers = self.survey.barriers
        while value.id in barriers:
            value = barriers[value.id].operands[0]
        return value

    def sharding_before_barriers(self, value: Value) -> TensorSharding | None:
        """Return the sharding of a value before all propagation barriers."""
        return self.sharding(self.before_barriers(value))

    def mesh(self, sharding: TensorSharding) -> Mesh:
        """Return the mesh of a sharding.

        Raises:
            VerificationError: there is no mesh of its name.
        """
        return mesh_of(sharding, self.meshes)

    def set_result_sharding(self, value: Value, sharding: TensorSharding) -> None:
        """Give a result of an op a sharding.

        The op holds the shardings of all its results in one attribute, so that the others get open ones.
        """
        table, op = self.program.shardings, value.owning_op
        table[value.id] = sharding
        if op.id in self.opened:
            return
        self.opened.add(op.id)
        for other in op.results:
            table.setdefault(other.id, TensorSharding.fully_open(sharding.mesh, rank_of(other)))

    def reshard(self, value: Value, sharding: TensorSharding, place: InsertionPoint) -> Value:
        """Insert a reshard of a value and return its result."""
        return self._insert(RESHARD, value, {"sharding": sharding}, sharding, place)

    def all_reduce(
        self, value: Value, axes: Axes, sharding: TensorSharding, reduction: ReductionOp, place: InsertionPoint
    ) -> Value:
        """Insert an all-reduce of a value along some axes and return its result."""
        from shardy_py.sharding.op_attributes import AxisRefList

        attributes: dict[str, Any] = {"reduction_axes": AxisRefList(tuple(axes))}
        if reduction != "sum":
            attributes["reduction_op"] = RawAttribute(reduction_op_text(reduction))
        return self.collective(ALL_REDUCE, value, attributes, sharding, place)

    def collective(
        self, name: str, value: Value, attributes: Mapping[str, Any], sharding: TensorSharding, place: InsertionPoint
    ) -> Value:
        """Insert a collective on a value and return its result."""
        return self._insert(name, value, {**attributes, "out_sharding": sharding}, sharding, place)

    def _insert(
        self, name: str, value: Value, attributes: dict[str, Any], sharding: TensorSharding, place: InsertionPoint
    ) -> Value:
        op = Op(self.program, name, [value], [value.type], attributes)
        place.insert(op)
        self.program.shardings[op.results[0].id] = sharding
        return op.results[0]


def rank_of(value: Value) -> int:
    """Return the number of dimensions of a value; 0 where it is no tensor."""
    return value.type.rank if isinstance(value.type, TensorType) else 0
