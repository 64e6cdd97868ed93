"""The process that compiles a program for `shardy_py.targets.jax.probe`."""

from __future__ import annotations

from shardy_py.processes.serve import ShowStep, serve
from shardy_py.targets.jax.host import use_devices


def main() -> None:
    """Compile the bytecode that the parent sends behind a line with the number of devices."""
    serve(_answer)


def _answer(request: bytes, show: ShowStep) -> bytes:
    count, _, bytecode = request.partition(b"\n")
    use_devices(int(count))
    import jax

    from shardy_py.targets.jax.executable import compile_bytecode
    from shardy_py.targets.jax.kernels import register_kernels

    register_kernels()
    compile_bytecode(bytecode, jax.devices()[: int(count)])
    return b""
