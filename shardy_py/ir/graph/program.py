"""Programs: the ops of a module, and beside them the table of shardings and the rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping
from itertools import count, islice
from typing import Any

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.op_graph import Block, Op, Region, Value
from shardy_py.ir.graph.op_names import FUNCTION, MESH, OpIndex
from shardy_py.ir.graph.types import Type
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding

__all__ = ["Block", "Op", "Program", "Region", "Value"]


class Program:
    """A module: its ops, and beside them the table of shardings.

    Attributes:
        body: The block of the module, with functions, meshes and other symbols.
        attributes: The attributes of the module.
        shardings: Value id to tensor sharding. Results of functions have ids, too (`Op.function_results`).
        rules: Op id to the rule that propagation used. It replaces the attribute ``sdy.sharding_rule`` until
            the program is written back, as most pipelines drop the rules again before that.
        facts: The function that a registry answers questions about the ops with, by a token of the registry.
        op_names: The names of all ops that are or ever were in the program, so that a pass need not look for others.
        attribute_names: The names of the attributes that a frontend read with the ops, until somebody may change them;
            None where that is not known.
        value_types: The types of all values that a frontend read, and maybe others, or None; ask `known_types`.
        index: The ops by name; ask it by the functions of `shardy_py.ir.graph.walk`.
        next_id: Returns a new id. An op and its first result have the same one, as each number is an object.
        renamed: The ops that have another name than their frontend knows, until the program is written back.
        stand_ins: Id of an op to those that come back when it goes; see `shardy_py.ir.graph.rewriting`.
        kinds_hold: Whether an op is of the kind that it was found to be; false where somebody may change types.
        has_foreign_types: Whether values are tensors of dialects' own types, such as ``!torch.vtensor<[2,3],f32>``;
            None where that is not known.
        frontend: The `Frontend` that writes the program back; None for one that was built in Python.
        origin: Whatever the frontend needs to write the program back.
        originals: The ids of values that are copies, to those of what they are copies of.
        plugin_problems: What failed in plugins that the program does not need, each once.
        call_sites: The ids of ops that replaced a call, to that call; until the program is written back.
    """

    __slots__ = (
        "__weakref__",
        "attribute_names",
        "attributes",
        "body",
        "call_sites",
        "facts",
        "frontend",
        "has_foreign_types",
        "index",
        "kinds_hold",
        "locate",
        "next_id",
        "op_names",
        "origin",
        "originals",
        "plugin_problems",
        "renamed",
        "rules",
        "scope_of",
        "shardings",
        "stand_ins",
        "value_types",
    )

    def __init__(self) -> None:
        self.next_id: Callable[[], int] = count().__next__
        self.op_names: set[str] = set()
        self.attribute_names: Collection[str] | None = None
        self.value_types: Collection[Type] | None = None
        self.index: OpIndex[Op] = OpIndex(lambda: self.body.list_ops())
        self.body = Block(self)
        self.attributes: MutableMapping[str, Attribute] = {}
        self.shardings: dict[int, TensorSharding] = {}
        self.rules: dict[int, OpShardingRule] = {}
        self.facts: dict[object, Callable[[Op], Any]] = {}
        self.renamed: list[Op] = []
        self.stand_ins: dict[int, tuple[Op, ...]] = {}
        self.kinds_hold = False
        self.has_foreign_types: bool | None = None
        self.frontend: Any = None
        self.origin: Any = None
        self.originals: dict[int, int] = {}
        self.plugin_problems: dict[object, Diagnostic] = {}
        self.call_sites: dict[int, Op] = {}
        self.locate: Callable[[Op], str] = lambda op: ""
        self.scope_of: Callable[[Op], str] = lambda op: ""

    def new_function_results(self, function: Op, types: Iterable[Type]) -> None:
        """Give a function one value per result, to carry its sharding."""
        function.function_results = [Value(self.next_id(), type_, function, index) for index, type_ in enumerate(types)]

    def known_types(self) -> Collection[Type] | None:
        """Return the types of all values, and maybe others; None where somebody may have changed them."""
        return self.value_types if self.kinds_hold else None

    def walk(self) -> Iterator[Op]:
        """Iterate over all ops, each before those in its regions."""
        return self.body.walk()

    @property
    def functions(self) -> dict[str, Op]:
        """Name to function op, in order."""
        return {op.attributes["sym_name"]: op for op in self._outer_ops(FUNCTION)}

    @property
    def meshes(self) -> dict[str, Mesh]:
        """Name to mesh, in order."""
        return {op.attributes["sym_name"]: op.attributes["mesh"] for op in self._outer_ops(MESH)}

    def _outer_ops(self, name: str) -> list[Op]:
        """Return the ops of a name at the top level of the module."""
        outer_ops = []
        op = self.body.first
        while op is not None:
            if op.name == name:
                outer_ops.append(op)
            op = op.next
        return outer_ops

    def sharding(self, value: Value) -> TensorSharding | None:
        """Return the sharding of a value, or None."""
        return self.shardings.get(value.id)

    def __repr__(self) -> str:
        return f"<Program with {', '.join(f'@{name}' for name in islice(self.functions, 3)) or 'no function'}>"
