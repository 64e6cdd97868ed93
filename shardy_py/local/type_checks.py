"""Checks of the types in a local program: each is that of a shard, and what hands values on has one type on both sides.

A type that does not fit is a fault of this package or of a plugin, and no program with one is shown to anybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardy_py.errors import Diagnostic, PluginError, VerificationError
from shardy_py.ir.graph.data_flow import EdgeMembers
from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Op, Program, Region, Value
from shardy_py.ir.graph.types import Type, are_same_tensors
from shardy_py.ir.graph.verify import call_problems
from shardy_py.ir.graph.walk import region_arguments
from shardy_py.ir.interfaces.local_types import local_type
from shardy_py.ir.interfaces.ops import ShardableDataFlowOpInterface
from shardy_py.plugins.check_data_flow import data_flow_problems
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

_CODE = "local-types"


def check_shard_type(value: Value, sharding: TensorSharding | None, type_: Type, meshes: Mapping[str, Mesh]) -> None:
    """Check that what stands for a value on each device has the type of its shard.

    Args:
        value: The value of the global program.
        sharding: Its sharding.
        type_: The type on each device.
        meshes: The meshes of the program by name.

    Raises:
        VerificationError: it has another one.
    """
    shard_type = local_type(value.type, sharding, meshes)
    if are_same_tensors(type_, shard_type):
        return
    op = value.owning_op
    name = f"result {value.index}" if value.owner is op else f"region argument {value.index}"
    message = f"{name} of type {value.type} is {type_} on each device, but a shard under {sharding} is {shard_type}"
    raise VerificationError(Diagnostic(_CODE, message, op.location, op.name, "reshard it explicitly first"))


def check_region_types(op: Op, local_op: Op, flow: ShardableDataFlowOpInterface, members: EdgeMembers) -> None:
    """Check a data-flow op on each device: values of one edge have one type, all others are whole.

    Args:
        op: The op of the global program.
        local_op: The op on each device.
        flow: The data flow of both.
        members: The values on the edges of the first one.

    Raises:
        VerificationError: two types of one edge differ, or a value on no edge is a shard.
        PluginError: the data flow does not fit the op on each device.
    """
    for problem in data_flow_problems(local_op, flow):
        raise PluginError(problem)
    for user, new in zip((op, *_ends(op)), (local_op, *_ends(local_op)), strict=True):
        for number, (value, local) in enumerate(zip(user.operands, new.operands, strict=True)):
            if (user.id, number) not in members.sources:
                _check_whole(user, f"operand {number}", value, local)
    pairs = zip((*region_arguments(op), *op.results), (*region_arguments(local_op), *local_op.results), strict=True)
    for value, local in pairs:
        if value.id not in members.targets:
            name = f"result {value.index}" if value.owner is op else f"region argument {value.index}"
            _check_whole(op, name, value, local)


def _ends(op: Op) -> list[Op]:
    ends = [block.last for region in op.regions for block in region.blocks]
    return [end for end in ends if end is not None and not end.results]


def _check_whole(op: Op, name: str, value: Value, local: Value) -> None:
    if not are_same_tensors(local.type, value.type):
        message = f"{name} is {local.type} on each device, but {value.type} is on no edge, and has to be whole"
        raise VerificationError(Diagnostic(_CODE, message, op.location, op.name))


def check_calls(program: Program) -> None:
    """Check that the calls of a program fit the functions that they call.

    Raises:
        VerificationError: operands or results have other types than the function has.
    """
    problems = list(call_problems(program))
    if problems:
        raise VerificationError(*problems)


def check_returns(region: Region, results: Sequence[Type]) -> None:
    """Check that a function returns what its type says.

    Raises:
        VerificationError: a value has another sharding than the result.
    """
    for block in region.blocks:
        end = block.terminator
        if end is None or end.name != RETURN:
            continue
        for number, (value, type_) in enumerate(zip(end.operands, results, strict=True)):
            if value.type != type_:
                message = f"result {number} is {type_} on each device, but {value.type} is returned"
                hint = "the shardings of what is returned and of the result differ; reshard explicitly first"
                raise VerificationError(Diagnostic("local-types", message, end.location, end.name, hint))
