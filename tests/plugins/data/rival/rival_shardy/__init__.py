"""A plugin that defines an op of another plugin once more."""

from shardy_py.plugins import Dialect, hookimpl

rival = Dialect("rival")
rival.op("acme.add")


@hookimpl
def shardy_register_dialects():
    """Return the dialect."""
    return [rival]
