"""The protocols that ops, passes, frontends and cost models implement; those of ops can be imported from here."""

from typing import Any


def __getattr__(name: str) -> Any:
    from shardy_py.ir.interfaces import ops

    return getattr(ops, name)
