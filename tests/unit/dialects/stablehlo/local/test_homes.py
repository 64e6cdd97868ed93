"""The modules of local forms."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module

from shardy_dialects.stablehlo import local

PACKAGE = local.__name__


def test_each_form_is_where_it_is_looked_for() -> None:
    """The table of homes has each form of each module, and no other."""
    found = {}
    for module in pkgutil.iter_modules(local.__path__):
        forms = getattr(import_module(f"{PACKAGE}.{module.name}"), "FORMS", None)
        if forms is not None and module.name != "by_types":
            found[module.name] = {name.removeprefix("stablehlo.") for name in forms}
    assert found == {home: set(names.split()) for home, names in local.HOMES.items()}


def test_forms_are_imported_when_they_are_needed() -> None:
    """The dialect comes without the modules of most forms."""
    code = (
        "import sys, shardy_dialects.stablehlo\n"
        f"from {PACKAGE} import HOMES\n"
        f"print([home for home in HOMES if '{PACKAGE}.' + home in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
