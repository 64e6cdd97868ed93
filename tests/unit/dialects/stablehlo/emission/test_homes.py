"""The modules of scalar bodies."""

from __future__ import annotations

from importlib import import_module

from shardy_dialects.stablehlo import emission


def test_each_body_is_where_it_is_looked_for() -> None:
    """The table of homes has each body of each module, and no other."""
    found = {home: set(import_module(f"{emission.__name__}.{home}").BODIES) for home in emission.HOMES}
    assert found == {home: set(names.split()) for home, names in emission.HOMES.items()}
