"""The process that compiles a program for `shardy_py.jax.probe`."""

from __future__ import annotations

from shardy_py.jax.host import use_devices
from shardy_py.support.processes.serve import ShowStep, serve


def main() -> None:
    """Compile the bytecode that the parent sends behind a line with the number of devices."""
    serve(_answer)


def _answer(request: bytes, show: ShowStep) -> bytes:
    count, _, bytecode = request.partition(b"\n")
    use_devices(int(count))
    import jax

    from shardy_py.jax.executable import compile_bytecode
    from shardy_py.jax.kernels import register_kernels

    register_kernels()
    compile_bytecode(bytecode, jax.devices()[: int(count)])
    return b""
