"""Shardings in models: ONNX's specification for several devices, and metadata from which they are read again.

A node lists the specifications of its inputs and outputs (``ShardingSpecProto``, since version 11 of the format). They
say on which devices the parts of a tensor are, not along which axes of a mesh; so the model has these as metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from onnx import ModelProto

from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.onnx.node_graphs import BODY_NAMES, node_graph, node_name
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_mesh
from shardy_py.sharding.shard_positions import shard_positions
from shardy_py.sharding.tensor import TensorSharding

_VERSION = 11
"""The version of the format that has specifications for several devices."""
CONFIGURATION = "shardy"
Shardings = Mapping[str, tuple[TensorSharding, int]]
"""The shardings of tensors, and their ranks, by name."""
_MESH, _SHARDING = "shardy.mesh", "shardy.sharding."


def read_annotations(model: ModelProto) -> tuple[Mesh | None, dict[str, str]]:
    """Return the mesh and the shardings of tensors that the metadata of a model have."""
    metadata = {item.key: item.value for item in model.metadata_props}
    mesh = parse_mesh(metadata[_MESH]) if _MESH in metadata else None
    return mesh, {
        key.removeprefix(_SHARDING): value
        for key, value in metadata.items()
        if key.startswith(_SHARDING) and mesh is not None
    }


def annotated_model(program: Program) -> ModelProto:
    """Return a copy of the model of a program with the shardings of its tensors."""
    origin = program.origin
    model = ModelProto()
    model.CopyFrom(origin.model)
    shardings = dict(_shardings(program, origin.values))
    other_metadata = [item for item in model.metadata_props if not item.key.startswith((_MESH, _SHARDING))]
    del model.metadata_props[:]
    model.metadata_props.extend(other_metadata)
    mesh = next((item for item in program.meshes.values() if item.axes), None)
    if mesh is None:
        return model
    model.metadata_props.add(key=_MESH, value=str(mesh))
    for name, (sharding, _) in shardings.items():
        model.metadata_props.add(key=f"{_SHARDING}{name}", value=str(sharding))
    model.ir_version = max(model.ir_version, _VERSION)
    _write_configuration(model, mesh)
    _annotate(model.graph, shardings, program, ())
    return model


def _annotate(graph: Any, shardings: Shardings, program: Program, path: tuple[str, ...]) -> None:
    """Write the specifications of the nodes of a graph, and of the graphs in them.

    Args:
        graph: The graph.
        shardings: The shardings of the tensors that it knows, those around it included.
        program: The program.
        path: Where the graph is, a key of the bodies of the origin.
    """
    for node in graph.node:
        del node.device_configurations[:]
        names = [name for name in dict.fromkeys((*node.input, *node.output)) if name in shardings]
        if names:
            configuration = node.device_configurations.add(configuration_id=CONFIGURATION)
            for name in names:
                sharding, rank = shardings[name]
                _write_specification(configuration.sharding_spec.add(tensor_name=name), sharding, rank, program)
        for attribute in BODY_NAMES.get(node.op_type, ()):
            inner = (*path, node_name(node), attribute)
            if (values := program.origin.bodies.get(inner)) is not None:
                known = {**shardings, **dict(_shardings(program, values))}
                _annotate(node_graph(node, attribute), known, program, inner)


def _shardings(program: Program, values: Mapping[str, Value]) -> Iterator[tuple[str, tuple[TensorSharding, int]]]:
    for name, value in values.items():
        sharding = program.sharding(value)
        if sharding is not None and isinstance(value.type, TensorType):
            yield name, (sharding, value.type.rank)


def _write_configuration(model: ModelProto, mesh: Mesh) -> None:
    others = [item for item in model.configuration if item.name != CONFIGURATION]
    del model.configuration[:]
    model.configuration.extend(others)
    names = [f"device{number}" for number in range(mesh.total_size)]
    model.configuration.add(name=CONFIGURATION, num_devices=mesh.total_size, device=names)


def _write_specification(specification: Any, sharding: TensorSharding, rank: int, program: Program) -> None:
    """Write which devices have which part, the parts in row-major order; several devices of one part are a group."""
    mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else program.meshes[sharding.mesh]
    counts = [sharding.of_dimension(dim).sharded_size(mesh) for dim in range(rank)]
    dims = [dim for dim in range(rank) if counts[dim] > 1]
    columns = [list(shard_positions(mesh, sharding.of_dimension(dim).axes)) for dim in dims]
    places = list(zip(*columns, strict=True)) if columns else [()] * mesh.total_size
    for number, place in enumerate(product(*(range(counts[dim]) for dim in dims))):
        devices = [device for device, other in enumerate(places) if other == place]
        if len(devices) == 1:
            specification.device.append(devices[0])
            continue
        # Negative numbers are of groups, as no device has one.
        specification.device.append(-1 - number)
        specification.index_to_device_group_map.add(key=-1 - number, value=devices)
    for dim in dims:
        sharded = specification.sharded_dim.add(axis=dim)
        sharded.simple_sharding.add(num_shards=counts[dim])
