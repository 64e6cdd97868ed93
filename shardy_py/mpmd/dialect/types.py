"""Types of tensors on a mesh, and topologies: the text of MLIR both ways."""

from __future__ import annotations

import re
from functools import lru_cache

from attrs import evolve

from shardy_py.errors import Diagnostic, UnsupportedError, VerificationError
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.mpmd.dialect.op_names import TOPOLOGY
from shardy_py.sharding.axes import quote
from shardy_py.sharding.lexer import unescape
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_mesh, parse_tensor_sharding
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

PINNED_HOST = "pinned_host"
DEVICE = "device"
MEMORY_KINDS = (PINNED_HOST, DEVICE)

_STRING = r'"((?:[^"\\]|\\.)*)"'
_MESH_TENSOR = re.compile(
    rf"!mpmd\.mesh_tensor<{_STRING}, (tensor<(?:[^<>]|<[^<>]*>)*>)"
    rf"(?:, sharding=<(.*?)>(?=, memory_kind=|>$))?(?:, memory_kind={_STRING})?>$"
)
_TENSOR = re.compile(r"tensor<((?:(?:\d+|\?)x)*)(.+)>")
_NAMED_MESH = re.compile(rf"<{_STRING}\s*:\s*(<\[[^\]]*\](?:,\s*device_ids=\[[^\]]*\])?>)>")


@frozen(cache_hash=True)
class MeshTensor:
    """The type of a tensor on a mesh.

    Args:
        mesh: The name of the mesh in the topology.
        tensor: The global type.
        sharding: The sharding, or None for replicated.
        memory_kind: ``pinned_host``, ``device``, or "" where it is not said.
    """

    mesh: str
    tensor: TensorType
    sharding: TensorSharding | None = None
    memory_kind: str = ""

    @property
    def is_on_host(self) -> bool:
        """True for a tensor in the memory of the host."""
        return self.memory_kind == PINNED_HOST

    @property
    def is_off_device(self) -> bool:
        """True for a tensor in the memory of the host, or on a mesh of hosts."""
        return self.is_on_host or is_host_mesh(self.mesh)

    @property
    def type(self) -> TensorType:
        """The type of the op graph.

        Raises:
            UnsupportedError: it is not a tensor: a token, for example, is on no mesh.
        """
        if not isinstance(self.tensor, TensorType):
            message = f"a value of type {self.tensor} cannot be on a mesh"
            raise UnsupportedError(Diagnostic("no-tensor", message, hint="leave tokens inside of named computations"))
        return TensorType(self.tensor.shape, self.tensor.element_type, str(self))

    def on(self, mesh: str) -> MeshTensor:
        """Return the type on another mesh, replicated, in the default memory."""
        return MeshTensor(mesh, self.tensor)

    def without_sharding(self) -> MeshTensor:
        """Return the replicated type."""
        return evolve(self, sharding=None)

    def __str__(self) -> str:
        sharding = "" if self.sharding is None else f", sharding={self.sharding}"
        memory = f", memory_kind={quote(self.memory_kind)}" if self.memory_kind else ""
        return f"!mpmd.mesh_tensor<{quote(self.mesh)}, {self.tensor}{sharding}{memory}>"


def is_host_mesh(name: str) -> bool:
    """Return whether a mesh is one of hosts, which its name says."""
    return name.endswith("/cpu")


def mesh_tensor_of(value: Value | Type) -> MeshTensor | None:
    """Return the type of a value as a tensor on a mesh, or None where it is not one."""
    return _parse(value.type.text if isinstance(value, Value) else value.text)


def type_inside(value: Value) -> Type:
    """Return the type that an operand has inside of a fragment: the tensor's, or its own where it is no tensor."""
    type_ = mesh_tensor_of(value)
    is_token = type_ is None and not isinstance(value.type, TensorType)
    return value.type if is_token else require_mesh_tensor(value).tensor


def require_mesh_tensor(value: Value) -> MeshTensor:
    """Return the type of a value that is a tensor on a mesh.

    Raises:
        VerificationError: it is not.
    """
    result = mesh_tensor_of(value)
    if result is None:
        message = f"expected a mesh tensor, got {value.type}"
        raise VerificationError(Diagnostic("no-mesh-tensor", message, value.owning_op.location, value.owning_op.name))
    return result


def is_on_mesh(value: Value) -> bool:
    """Return whether the type of a value is a mesh tensor."""
    return value.type.text.startswith("!mpmd.mesh_tensor<")


@lru_cache(maxsize=8192)
def _parse(text: str) -> MeshTensor | None:
    match = _MESH_TENSOR.match(text)
    if match is None:
        return None
    tensor = _tensor(match[2])
    sharding = None if match[3] is None else parse_tensor_sharding(f"<{match[3]}>")
    return MeshTensor(unescape(match[1]) or "", tensor, sharding, match[4] or "")


def _tensor(text: str) -> TensorType:
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise VerificationError(Diagnostic("no-tensor", f"{text} is not a ranked tensor"))
    sizes = [None if size == "?" else int(size) for size in match[1].split("x")[:-1]]
    return TensorType(tuple(sizes), match[2], text)


@frozen
class Topology:
    """The meshes of a program in order; schedules count them in this order.

    >>> str(Topology((("m0", Mesh.of(x=2)),)))
    '#mpmd.topology<<"m0" : <["x"=2]>>>'
    """

    meshes: tuple[tuple[str, Mesh], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the meshes, in order."""
        return tuple(name for name, _ in self.meshes)

    @property
    def device_meshes(self) -> tuple[str, ...]:
        """The names of the meshes that are not those of hosts, in order."""
        return tuple(name for name in self.names if not is_host_mesh(name))

    @property
    def is_homogeneous(self) -> bool:
        """True where all meshes are equal."""
        return len({mesh for _, mesh in self.meshes}) <= 1

    def mesh(self, name: str) -> Mesh | None:
        """Return the mesh of a name, or None."""
        return dict(self.meshes).get(name)

    @property
    def attribute(self) -> RawAttribute:
        """The attribute of functions."""
        return RawAttribute(str(self))

    def __str__(self) -> str:
        return f"#mpmd.topology<{', '.join(f'<{quote(name)} : {mesh}>' for name, mesh in self.meshes)}>"


def parse_topology(text: str) -> Topology:
    """Return the topology in an attribute's text."""
    pairs = _NAMED_MESH.findall(text)
    return Topology(tuple((unescape(name) or "", parse_mesh(mesh)) for name, mesh in pairs))


def topology_of(function: Op) -> Topology | None:
    """Return the topology of a function, or None where it is not a program over several meshes."""
    attribute = function.attributes.get(TOPOLOGY)
    return None if attribute is None else parse_topology(str(attribute))


def require_topology(op: Op) -> Topology:
    """Return the topology of the function around an op.

    Raises:
        VerificationError: there is none.
    """
    parent: Op | None = op
    while parent is not None:
        topology = topology_of(parent)
        if topology is not None:
            return topology
        parent = parent.parent_op
    message, hint = "the function has no topology", "give it an attribute topology = #mpmd.topology<...>"
    raise VerificationError(Diagnostic("no-topology", message, op.location, op.name, hint))
