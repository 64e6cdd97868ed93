"""Allocations of memory that the threads of a block share."""

from __future__ import annotations

from math import prod

from xdsl.dialects import builtin

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.dialect.memory_ops import AllocateSharedOp
from shardy_py.kernels.launch.grid import shared_tile_bytes
from shardy_py.kernels.passes.base import KernelContext, functions
from shardy_py.values import frozen


@frozen
class LowerShared:
    """Move allocations to the begin of their function: a block has each tile once, whatever loop asks for it."""

    name: str = "lower-shared"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for function in functions(module):
            entry = function.body.blocks[0]
            allocations = [op for op in function.walk() if isinstance(op, AllocateSharedOp)]
            for op in reversed(allocations):
                first = entry.first_op
                if first is op or first is None:
                    continue
                op.detach()
                entry.insert_op_before(op, first)


def check_shared_memory(module: builtin.ModuleOp, device: DeviceSpec) -> None:
    """Check that a block's tiles fit the shared memory of a device.

    Args:
        module: The module before the first pass.
        device: The device.

    Raises:
        UnsupportedError: they do not.
    """
    for function in functions(module):
        types = [op.output.type for op in function.walk() if isinstance(op, AllocateSharedOp)]
        tensors = [type_ for type_ in types if isinstance(type_, builtin.TensorType)]
        needed = sum(shared_tile_bytes(prod(item.get_shape()), str(item.element_type)) for item in tensors)
        if needed > device.shared_bytes:
            message = f"expected at most {device.shared_bytes} bytes of shared memory on {device.name}, got {needed}"
            hint = f"the kernel has {len(tensors)} tiles; let it compute fewer results, or give a device with more"
            raise UnsupportedError(Diagnostic("shared-memory", message, op=function.sym_name.data, hint=hint))
