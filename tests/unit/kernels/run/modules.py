"""Modules of kernels for the tests of the interpreter, from their text."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp

from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.run.kernel import run_kernel

WARP = Launch((1, 1, 1), (32, 1, 1))


def entry(types: str, body: str, *, result: str, returned: str = "%o", functions: str = "") -> ModuleOp:
    """A module whose entry function takes ``%o``, the result, last.

    Args:
        types: The arguments before it, each with a comma: ``%x: tensor<32xf32>,``.
        body: The ops; ``%t`` is the thread, ``%block`` its block.
        result: The type of the result.
        returned: The value that is returned.
        functions: More functions.
    """
    module = parse_kernel_module(f"""
func.func @main({types} %o: {result}) -> {result} attributes {{xla.entry}} {{
  %t = gpu.thread_id x
  %block = gpu.block_id x
  {body}
  func.return {returned} : {result}
}}
{functions}
""")
    module.verify()
    return module


def run_one(module: ModuleOp, inputs: list[Any], output: tuple[Any, Any], *, launch: Launch = WARP, **more: Any) -> Any:
    """What a module with one result writes."""
    (actual,) = run_kernel(module, launch, inputs, [output], **more)
    return actual
