"""Functions, calls, and the module around them."""

from __future__ import annotations

from shardy_py.plugins import ConstantLike, Dialect, IsTerminator, Pure, ReturnLike, hookimpl

func = Dialect("func")
func.op("func.func")
func.op("func.return", traits=[IsTerminator, ReturnLike, Pure])
func.op("func.call")
func.op("func.call_indirect")
func.op("func.constant", traits=[ConstantLike, Pure])

builtin = Dialect("builtin")
builtin.op("builtin.module")
builtin.op("builtin.unrealized_conversion_cast", traits=[Pure])


@hookimpl
def shardy_register_dialects() -> list[Dialect]:
    """Return the dialects func and builtin."""
    return [builtin, func]
