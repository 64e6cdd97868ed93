"""Compilation in a process of its own first, where XLA is known to end the process for some programs.

Run as a module it reads bytecode from its input and compiles it for as many host devices as its argument says.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.attributes import DenseElements
from shardy_py.ir.graph import Op, Program
from shardy_py.ir.op_index import ops_named
from shardy_py.ir.op_names import CONSTRAINT
from shardy_py.orphans import end_with_parent
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.targets.jax.form.faulty_dims import ending_dims

_CONVOLUTION = "stablehlo.convolution"
_RISKY = (_CONVOLUTION, "stablehlo.pad", "stablehlo.reduce_window")
"""Ops for which XLA's partitioner fails a check of its own where they are sharded along some dimensions."""
_FAILED = "Check failed"


def probe(program: Program, bytecode: bytes, count: int) -> None:
    """Compile a program in another process, if it has an op that may end the process.

    Args:
        program: The program in the form for XLA.
        bytecode: The same as MLIR's bytecode.
        count: The number of devices.

    Raises:
        UnsupportedError: that process ended by a signal; an error of XLA is left to the process that runs the program.
    """
    risky = [op for op in ops_named(program, *_RISKY) if _may_end_xla(program, op)] if count > 1 else []
    if not risky:
        return
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(count)],
        input=bytecode,
        capture_output=True,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        check=False,
    )
    if done.returncode >= 0:
        return
    lines = done.stderr.decode(errors="replace").splitlines()
    words = next((line for line in lines if _FAILED in line), f"it ended with {-done.returncode}")
    message = f"XLA would end the process: {words.strip()}"
    names = " or ".join(dict.fromkeys(op.name for op in risky))
    hint = f"replicate the operands of the {names} along the dimensions of its window or padding"
    raise UnsupportedError(Diagnostic("ends-xla", message, risky[0].location, risky[0].name, hint))


def _may_end_xla(program: Program, op: Op) -> bool:
    if op.name == _CONVOLUTION or _cuts_off(op):
        return _is_sharded(program, op)
    dims = ending_dims(op)
    return bool(dims) and _is_open_along(program, op, dims)


def _cuts_off(op: Op) -> bool:
    """Return whether the windows of a ``reduce_window`` leave out elements at an end."""
    padding = op.attributes.get("padding")
    return isinstance(padding, DenseElements) and min(padding.values, default=0) < 0


def _is_open_along(program: Program, op: Op, dims: Sequence[int]) -> bool:
    """Return whether XLA may shard an op along a dimension, as no constraint around it says that it is whole."""
    operand = op.operands[0]
    made = next((user for user in op.results[0].users if user.name == CONSTRAINT), None)
    shardings = (_constraint(operand.defining_op) or program.shardings.get(operand.id), _constraint(made))
    return any(item is None or any(item.dim_shardings[dim].axes for dim in dims) for item in shardings)


def _constraint(op: Op | None) -> TensorSharding | None:
    return op.attributes.get("sharding") if op is not None and op.name == CONSTRAINT else None


def _is_sharded(program: Program, op: Op) -> bool:
    """Return whether a constraint on an operand or the result has axes."""
    around = [value.defining_op for value in op.operands] + [user for value in op.results for user in value.users]
    shardings = [item.attributes.get("sharding") for item in around if item is not None]
    arguments = [program.shardings.get(value.id) for value in op.operands]
    return any(not item.empty_axes for item in (*shardings, *arguments) if item is not None)


def main() -> None:
    """Compile the bytecode of the standard input."""
    end_with_parent()
    import jax

    from shardy_py.targets.jax.executable import compile_bytecode
    from shardy_py.targets.jax.kernels import register_kernels

    register_kernels()
    compile_bytecode(sys.stdin.buffer.read(), jax.devices()[: int(sys.argv[1])])


if __name__ == "__main__":
    main()
