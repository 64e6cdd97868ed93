"""Bytes of each tensor on one device, with the layout that a policy gives to its shard."""

from __future__ import annotations

from collections.abc import Iterable

from shardy_py.api.main_function import argument_names, arguments_of, result_names
from shardy_py.api.summary import local_shape, mesh_of, tensor_bytes
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.layout.policies import POLICIES, LayoutPolicy
from shardy_py.layout.shape import Shape
from shardy_py.layout.sizes import padded_bytes
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.element_types import xla_element_type
from shardy_py.values import frozen


@frozen
class TensorMemory:
    """Bytes of one tensor on one device.

    Args:
        name: The name of the argument or result: the user's own where it is known.
        shape: Its largest shard with its layout.
        logical_bytes: The bytes of the whole tensor, without padding.
        shard_bytes: The bytes of the shard, without padding.
        padded_bytes: The bytes of the shard in memory.
    """

    name: str
    shape: Shape
    logical_bytes: int
    shard_bytes: int
    padded_bytes: int

    @property
    def wasted_bytes(self) -> int:
        """The bytes on the device that hold no data."""
        return self.padded_bytes - self.shard_bytes

    @property
    def waste(self) -> float:
        """The share of the bytes on the device that hold no data."""
        return self.wasted_bytes / self.padded_bytes if self.padded_bytes else 0.0

    @property
    def memory_space(self) -> str:
        """The memory the tensor lies in."""
        return self.shape.layout.memory_space.name


@frozen
class MemoryReport:
    """Bytes of the inputs and outputs of a program on one device.

    Args:
        policy: The name of the layout policy.
        arguments: The arguments of the main function whose size is known.
        results: Its results whose size is known.
        unknown: The names of those whose size is not known.
    """

    policy: str
    arguments: tuple[TensorMemory, ...]
    results: tuple[TensorMemory, ...]
    unknown: tuple[str, ...] = ()


def policy_of(policy: str | LayoutPolicy) -> LayoutPolicy:
    """Return a policy, or the policy of a name.

    Raises:
        OptionError: there is none of that name.
    """
    if not isinstance(policy, str):
        return policy
    if policy not in POLICIES:
        message = f"there is no layout policy {policy!r}"
        raise OptionError(Diagnostic("unknown-layout-policy", message, hint=f"use {', '.join(POLICIES)}"))
    return POLICIES[policy]


def device_shape(type_: Type, sharding: TensorSharding | None, mesh: Mesh | None, policy: LayoutPolicy) -> Shape | None:
    """Return the largest shard of a tensor with the layout a policy chooses for it; None where its size is not known.

    The compiler chooses layouts after it divided the program, so the shard decides, not the whole.
    """
    if not isinstance(type_, TensorType) or not type_.is_static:
        return None
    name = xla_element_type(type_.element_type)
    if name is None:
        return None
    shape = Shape(name, local_shape(type_.shape, sharding, mesh))  # type: ignore[arg-type]
    return shape.with_layout(policy.choose(shape))


def padded_tensor_bytes(
    type_: Type, sharding: TensorSharding | None, mesh: Mesh | None, policy: LayoutPolicy
) -> int | None:
    """Return the bytes the largest shard of a tensor takes in memory; None where its size is not known."""
    shape = device_shape(type_, sharding, mesh, policy)
    return None if shape is None else padded_bytes(shape)


def report_memory(program: Program, main: Op, policy: str | LayoutPolicy) -> MemoryReport:
    """Return the bytes of the inputs and outputs of the main function on one device.

    Raises:
        OptionError: there is no policy of that name.
    """
    chosen = policy_of(policy)
    inputs = list(zip(argument_names(main), arguments_of(main), strict=True))
    outputs = list(zip(result_names(main), main.function_results, strict=True))
    arguments = dict(_measured(program, inputs, chosen))
    results = dict(_measured(program, outputs, chosen))
    unknown = tuple(name for name, _ in (*inputs, *outputs) if (arguments | results)[name] is None)
    return MemoryReport(
        chosen.name,
        tuple(item for item in arguments.values() if item is not None),
        tuple(item for item in results.values() if item is not None),
        unknown,
    )


def _measured(
    program: Program, values: Iterable[tuple[str, Value]], policy: LayoutPolicy
) -> Iterable[tuple[str, TensorMemory | None]]:
    for name, value in values:
        sharding = program.shardings.get(value.id)
        mesh = mesh_of(program, sharding) if sharding is not None else None
        shape = device_shape(value.type, sharding, mesh, policy)
        tensor_size, shard_size = tensor_bytes(value.type), tensor_bytes(value.type, sharding, mesh)
        if shape is None or tensor_size is None or shard_size is None:
            yield name, None
            continue
        yield name, TensorMemory(name, shape, tensor_size, shard_size, padded_bytes(shape))
