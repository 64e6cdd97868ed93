"""Hook of the wheel's build: with ``SHARDY_PY_COMPILED=1`` the wheel has the compiled modules beside their sources."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The build imports this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from compiled import build as compiled_build

VARIABLE = "SHARDY_PY_COMPILED"
"""The environment variable that asks for compiled modules."""


class CompiledModulesHook(BuildHookInterface[Any]):
    """Adds the compiled modules to a wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what the build needs besides hatchling, which is the extra ``compiled``, and a C compiler."""
        return list(self.metadata.core.optional_dependencies["compiled"]) if _is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile in a copy of the sources, and name what is made for the wheel."""
        if not _is_wanted():
            return
        if version == "editable":
            self.app.display_warning(f"{VARIABLE}: an editable installation stays pure Python")
            return
        self._copy = Path(tempfile.mkdtemp(prefix="shardy_py-compiled-"))
        compiled_build.copy_checkout(Path(self.root), self._copy)
        for path in compiled_build.build(self._copy):
            build_data["force_include"][str(path)] = path.relative_to(self._copy).as_posix()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copy, which the wheel was made from."""
        copy = getattr(self, "_copy", None)
        if copy is not None:
            shutil.rmtree(copy)


def _is_wanted() -> bool:
    return os.environ.get(VARIABLE, "0") not in ("", "0")
