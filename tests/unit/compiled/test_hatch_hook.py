"""The wheel has compiled modules where they are asked for, and is pure otherwise."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("Cython")
pytest.importorskip("setuptools")
pytest.importorskip("hatchling")

from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

ROOT = Path(__file__).resolve().parents[3]
TYPES = "shardy_py/ir/graph/types.py"


class App:
    """What a hook tells of itself."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_warning(self, message: str) -> None:
        """Keep a warning."""
        self.warnings.append(message)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The hook, which compiles one module only."""
    from compiled import hatch_hook

    build = hatch_hook.compiled_build.build
    monkeypatch.setattr(hatch_hook.compiled_build, "build", lambda root: build(root, [TYPES]))
    metadata = ProjectMetadata(str(ROOT), PluginManager())
    return hatch_hook.CompiledModulesHook(str(ROOT), {}, None, metadata, "", "wheel", App())  # type: ignore[arg-type]


def _initialize(hook: Any, version: str = "standard") -> dict[str, Any]:
    data: dict[str, Any] = {"force_include": {}, "pure_python": True, "infer_tag": False}
    hook.initialize(version, data)
    return data


@pytest.mark.parametrize("value", ["", "0", None])
def test_a_wheel_is_pure_unless_asked(hook: Any, monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    """Without the variable nothing is needed, compiled or added."""
    if value is None:
        monkeypatch.delenv("SHARDY_PY_COMPILED", raising=False)
    else:
        monkeypatch.setenv("SHARDY_PY_COMPILED", value)
    assert hook.dependencies() == []
    assert _initialize(hook) == {"force_include": {}, "pure_python": True, "infer_tag": False}


def test_an_editable_installation_is_pure(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so, as the sources are to be changed there."""
    monkeypatch.setenv("SHARDY_PY_COMPILED", "1")
    assert _initialize(hook, "editable")["pure_python"]
    assert "editable" in hook.app.warnings[0]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_a_compiled_wheel(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extension module stands beside its source, the wheel is for this machine, and the copy goes in the end."""
    monkeypatch.setenv("SHARDY_PY_COMPILED", "1")
    assert any("cython" in item for item in hook.dependencies())
    data = _initialize(hook)
    ((target, place),) = data["force_include"].items()
    assert Path(target).is_file()
    assert place.startswith("shardy_py/ir/graph/types.")
    assert not place.endswith(".py")
    assert (data["pure_python"], data["infer_tag"]) == (False, True)
    assert not list((ROOT / "shardy_py" / "ir").glob("types.*.so")) or (ROOT.name == "compiled")
    hook.finalize("standard", data, "")
    assert not Path(target).exists()
