"""Op graphs of PyTorch as bytes, for other processes: without tensors, and equal for equal programs.

The bytes are JSON. Values are numbered in program order: the arguments of a block, then the results of each op, then
the values of its regions. Reading needs no PyTorch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import asdict

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.sharding.parse import parse_mesh
from shardy_py.torch.frontend.inferred_sizes import SIZED
from shardy_py.torch.frontend.origin import Argument, Output, TorchOrigin
from shardy_py.torch.frontend.packed import PackedProgram

_OF_SHARDY = "sdy."


def pack(program: Program) -> PackedProgram:
    """Return a program of PyTorch with its meshes and the shardings of its values."""
    return PackedProgram(_Packer(program).run())


def unpack(packed: PackedProgram, *, frontend: Any) -> Program:
    """Return the program that was packed; it has no exported program.

    Args:
        packed: The bytes.
        frontend: The frontend that the program came through.
    """
    return _Unpacker(json.loads(packed.data), frontend).run()


class _Packer:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._origin: TorchOrigin = program.origin
        self._numbers: dict[int, int] = {}
        self._values: list[Value] = []

    def run(self) -> bytes:
        main = self._program.functions["main"]
        block = self._pack_block(main.regions[0].blocks[0])
        self._values.extend(main.function_results)
        shardings = self._program.shardings
        names = self._origin.node_names
        data = {
            "meshes": {name: str(mesh) for name, mesh in self._program.meshes.items()},
            "arguments": [asdict(item) for item in self._origin.arguments],
            "outputs": [asdict(item) for item in self._origin.outputs],
            "block": block,
            "module_types": dict(self._origin.module_types),
            "names": {n: names[v.id] for n, v in enumerate(self._values) if v.id in names},
            "shardings": {n: str(shardings[v.id]) for n, v in enumerate(self._values) if v.id in shardings},
        }
        return json.dumps(data, separators=(",", ":")).encode()

    def _pack_block(self, block: Block) -> dict[str, Any]:
        arguments = self._number(block.arguments)
        return {"arguments": arguments, "ops": [self._pack_op(op) for op in block.ops]}

    def _pack_op(self, op: Op) -> list[Any]:
        operands = [self._numbers[value.id] for value in op.operands]
        results = self._number(op.results)
        attributes = {name: value for name, value in op.attributes.items() if not name.startswith(_OF_SHARDY)}
        regions = [self._pack_block(block) for region in op.regions for block in region.blocks]
        module = self._origin.module_paths.get(op.id)
        inferred = self._origin.inferred_dims.get(op.id) or self._origin.shape_indices.get(op.id, ())
        return [op.name, operands, results, attributes, op.location, module, inferred, regions]

    def _number(self, values: Sequence[Value]) -> list[Any]:
        """Number values and return their types."""
        for value in values:
            self._numbers[value.id] = len(self._values)
            self._values.append(value)
        return [
            [value.type.shape, value.type.element_type] if isinstance(value.type, TensorType) else str(value.type)
            for value in values
        ]


class _Unpacker:
    def __init__(self, data: Mapping[str, Any], frontend: Any) -> None:
        self._data = data
        self._frontend = frontend
        meshes = {name: parse_mesh(text) for name, text in data["meshes"].items()}
        self._builder = Builder(meshes=meshes)
        self._values: list[Value] = []
        self._module_paths: dict[int, str] = {}
        self._inferred_dims: dict[int, tuple[int, ...]] = {}
        self._shape_indices: dict[int, tuple[int, ...]] = {}

    def run(self) -> Program:
        builder, block = self._builder, self._data["block"]
        with builder.function("main", map(_type, block["arguments"])) as arguments:
            self._values.extend(arguments)
            self._add_ops(block["ops"])
        program = builder.program
        self._values.extend(program.functions["main"].function_results)
        for number, text in self._data["shardings"].items():
            builder.shard(self._values[int(number)], text)
        program = builder.build()
        program.frontend = self._frontend
        program.origin = TorchOrigin(
            None,
            tuple(Argument(**item) for item in self._data["arguments"]),
            tuple(Output(**item) for item in self._data["outputs"]),
            {self._values[int(number)].id: name for number, name in self._data["names"].items()},
            self._module_paths,
            {},
            self._data["module_types"],
            self._inferred_dims,
            self._shape_indices,
        )
        return program

    def _add_ops(self, ops: Sequence[Any]) -> None:
        for name, operands, results, attributes, location, module, inferred, regions in ops:
            operand_values = [self._values[number] for number in operands]
            with self._builder.at(location):
                if name == RETURN:
                    self._builder.return_(*operand_values)
                    continue
                op = self._add_op(name, operand_values, list(map(_type, results)), _attributes(attributes), regions)
            if module is not None:
                self._module_paths[op.id] = module
            if inferred:
                noted = self._inferred_dims if name in SIZED else self._shape_indices
                noted[op.id] = tuple(inferred)

    def _add_op(
        self,
        name: str,
        operands: Sequence[Value],
        types: Sequence[Type],
        attributes: Mapping[str, Attribute],
        regions: Sequence[Any],
    ) -> Op:
        if not regions:
            op = self._builder.emit(name, operands, types, attributes)
            self._values.extend(op.results)
            return op
        with self._builder.region_op(name, operands, types, attributes) as op:
            self._values.extend(op.results)
            for block in regions:
                with self._builder.region(op, map(_type, block["arguments"])) as arguments:
                    self._values.extend(arguments)
                    self._add_ops(block["ops"])
        return op


def _type(packed: Any) -> Type:
    shape, element_type = packed
    return TensorType(tuple(shape), element_type)


def _attributes(packed: Mapping[str, Any]) -> dict[str, Attribute]:
    return {name: _attribute(value) for name, value in packed.items()}


def _attribute(packed: Any) -> Attribute:
    return tuple(map(_attribute, packed)) if isinstance(packed, list) else packed
