"""Compilation in a process of its own first, where XLA is known to end the process for some programs.

Run as a module it reads bytecode from its input and compiles it for as many host devices as its argument says.
"""

from __future__ import annotations

import os
import subprocess
import sys

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph import Op, Program
from shardy_py.ir.op_index import ops_named
from shardy_py.orphans import end_with_parent

_RISKY = ("stablehlo.convolution",)
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
    risky = [op for op in ops_named(program, *_RISKY) if _is_sharded(program, op)] if count > 1 else []
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
    hint = "replicate the operands of the convolution along the dimensions of its window"
    raise UnsupportedError(Diagnostic("ends-xla", message, risky[0].location, risky[0].name, hint))


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
